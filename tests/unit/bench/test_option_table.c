/* Every row of the command line's tables is sound: names, letters, commands, defaults, choices, help and examples. */
#include "failure_trace.h"
#include "bench/load/load.h"
#include "bench/options/option_table.h"
#include "prony_judge.h"
#include "prony_quantize.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FOR_EACH_ROW(row) for (size_t row##_index = 0; (row = option_at(row##_index)); row##_index++)

static void expect(bool right, const option_row *row, const char *rule)
{
    if (!right) fail_msg("--%s: %s", row->name, rule);
}

static bool takes_numbers(const option_row *row)
{
    return row->type == OPTION_INT || row->type == OPTION_INTS || row->type == OPTION_NUMBER ||
           row->type == OPTION_PERCENT;
}

/* Sets the option of a command that takes the row; the exit status. */
static int take(const option_row *row, const char *value)
{
    options o = {.command = "test", .model = {.image = PRONY_IMAGE_OPTIONS_INIT}};
    char text[200];
    snprintf(text, sizeof text, "%s", value);
    const int status = option_take(&o, row, text);
    options_free(&o);
    return status;
}

/* ---- rows ---- */

static void test_names_and_letters_are_unique_within_a_command(void **state)
{
    (void)state;
    const option_row *row, *other;
    FOR_EACH_ROW(row)
    {
        expect(row->name && *row->name && !strpbrk(row->name, " =_"), row, "a name of letters and dashes");
        FOR_EACH_ROW(other)
        {
            const bool same = strcmp(row->name, other->name) == 0;
            if (row == other) continue;
            if (row->commands & other->commands) {
                expect(!same, row, "a command takes two rows of this name");
                expect(!row->letter || row->letter != other->letter, row, "a command takes two rows of this letter");
            }
            if (same) {
                expect(row->letter == other->letter, row, "rows of one name have one letter");
                expect(!row->value == !other->value, row, "rows of one name all take a value, or none does");
                expect(row->group == other->group || row->commands != other->commands, row, "one group");
            } else {
                expect(!row->letter || row->letter != other->letter, row, "another option has this letter");
            }
        }
    }
}

static void test_aliases_name_one_option(void **state)
{
    (void)state;
    const option_row *row, *other;
    const char *alias, *alias_of_other;
    FOR_EACH_ROW(row)
    {
        const char *rest = row->aliases;
        for (size_t length; (length = next_item(&rest, ' ', &alias));) {
            FOR_EACH_ROW(other)
            {
                const bool is_name = strlen(other->name) == length && strncmp(other->name, alias, length) == 0;
                expect(!is_name, row, "an alias is the name of an option");
                const char *others = other->aliases;
                for (size_t size; (size = next_item(&others, ' ', &alias_of_other));)
                    expect(size != length || strncmp(alias, alias_of_other, size) != 0 ||
                               strcmp(row->name, other->name) == 0,
                           row, "another option has this alias");
            }
        }
    }
}

static void test_commands_exist_and_groups_are_in_order(void **state)
{
    (void)state;
    const option_row *row;
    option_group before = 0;
    uint32_t taken = 0;
    FOR_EACH_ROW(row)
    {
        expect(row->commands != 0, row, "no command takes it");
        expect(!(row->commands >> COMMAND_COUNT), row, "a command that does not exist");
        expect(row->group < GROUP_COUNT && group_title(row->group), row, "a group without a title");
        expect(row->group >= before, row, "rows stand by group");
        before = row->group;
        taken |= row->commands;
    }
    assert_int_equal(taken, (1U << COMMAND_COUNT) - 1);
}

static void test_help_is_short_and_complete(void **state)
{
    (void)state;
    const option_row *row;
    char preset[200];
    FOR_EACH_ROW(row)
    {
        expect(row->help && *row->help, row, "no help");
        expect(strlen(row->help) <= OPTION_HELP_WIDTH, row, "help is too long");
        const char last = row->help[strlen(row->help) - 1];
        expect(last != '.' || strstr(row->help, "..."), row, "help is a phrase without a full stop");
        expect(!row->details || row->details[strlen(row->details) - 1] == '.', row, "details are sentences");
        expect(!row->initial || !row->otherwise, row, "two defaults");
        expect(strlen(option_default(row, preset, sizeof preset)) < sizeof preset - 1, row, "the default is cut");
        const bool no_value = row->type == OPTION_FLAG || row->type == OPTION_HELP || row->type == OPTION_VERSION;
        expect(no_value == !row->value, row, "a value by type, and its name in the help, go together");
        expect((row->type == OPTION_PARSED) == (row->parse != NULL), row, "a parse function and OPTION_PARSED");
        expect(row->wanted || row->type != OPTION_NUMBER, row, "the message needs the wanted value in words");
    }
}

static void test_fields_belong_to_one_option(void **state)
{
    (void)state;
    const option_row *row, *other;
    FOR_EACH_ROW(row)
    {
        if (row->field == 0) continue;
        expect(row->field < sizeof(options), row, "a field outside of the options");
        FOR_EACH_ROW(other)
        expect(row->field != other->field || strcmp(row->name, other->name) == 0, row, "two options set one field");
    }
}

static void test_defaults_and_ranges_are_accepted_and_others_refused(void **state)
{
    (void)state;
    const option_row *row;
    char text[40];
    size_t defaults = 0;
    FOR_EACH_ROW(row)
    {
        if (row->initial) expect(take(row, row->initial) == 0, row, "its own default is refused");
        defaults += row->initial != NULL;
        if (row->type == OPTION_TIME || row->parse == parse_time_limit) {
            expect(take(row, "1ns") == 0 && take(row, "-1ns") == EXIT_USAGE && take(row, "1") == EXIT_USAGE, row,
                   "a time");
            expect((take(row, "0s") == 0) == (row->least < 1), row, "no time at all");
        }
        if (!takes_numbers(row)) continue;
        expect(row->least < row->most, row, "an empty range");
        if (row->otherwise && strspn(row->otherwise, "0123456789") == strlen(row->otherwise))
            expect(take(row, row->otherwise) == 0, row, "its default is out of range");
        snprintf(text, sizeof text, "%.17g", row->least);
        expect(take(row, text) == 0, row, "the least value is refused");
        snprintf(text, sizeof text, "%.17g", row->least - 1);
        expect(take(row, text) == EXIT_USAGE, row, "a value below the range is taken");
        expect(take(row, "x") == EXIT_USAGE && take(row, "") == EXIT_USAGE, row, "a word is taken as a number");
        if (row->most >= 1e15) continue; /* beyond a double's integers */
        snprintf(text, sizeof text, "%.17g", row->most);
        if (row->type != OPTION_INTS) expect(take(row, text) == 0, row, "the largest value is refused");
        snprintf(text, sizeof text, "%.17g", row->most + 1);
        expect(take(row, text) == EXIT_USAGE, row, "a value above the range is taken");
    }
    assert_true(defaults >= 6);
}

static void test_choices_are_taken_and_other_words_refused(void **state)
{
    (void)state;
    const option_row *row;
    const char *item;
    size_t lists = 0;
    FOR_EACH_ROW(row)
    {
        if (row->type != OPTION_CHOICE && row->type != OPTION_CHOICES) continue;
        const char *choices = row->choices;
        char text[40];
        lists++;
        for (size_t length; (length = next_item(&choices, ',', &item));) {
            snprintf(text, sizeof text, "%.*s", (int)length, item);
            expect(take(row, text) == 0, row, "a choice is refused");
        }
        expect(take(row, "nonsense") == EXIT_USAGE && take(row, "") == EXIT_USAGE, row, "another word is taken");
        if (row->otherwise && row->type == OPTION_CHOICE)
            expect(take(row, row->otherwise) == 0, row, "the default is not among the choices");
    }
    assert_true(lists >= 5);
}

/* ---- choices are those of the library ---- */

static void expect_choices(const char *command, const char *option, const char *const *names)
{
    bool several;
    const option_row *row = find_long(find_command(command), option, &several);
    const char *choices = row->choices, *item;
    size_t count = 0;
    for (size_t length; (length = next_item(&choices, ',', &item)); count++) {
        assert_non_null(names[count]);
        assert_int_equal(strlen(names[count]), length);
        assert_memory_equal(names[count], item, length);
    }
    assert_null(names[count]);
}

static void test_choices_are_those_of_the_library(void **state)
{
    (void)state;
    const char *presets[20] = {NULL}, *methods[4] = {NULL};
    expect_choices("bench", "scenario", scenario_names);
    expect_choices("profile", "svg", prony_chart_names());
    expect_choices("scale", "svg", prony_study_chart_names());
    assert_true(prony_count_preset_count() < 20);
    for (size_t i = 0; i < prony_count_preset_count(); i++) presets[i] = prony_count_preset_at(i)->name;
    expect_choices("inspect", "count", presets);
    for (int i = 0; i < 3; i++) methods[i] = prony_calibration_method_name((prony_calibration_method)i);
    expect_choices("quantize", "calibrate-method", methods);
    bool several;
    const option_row *level = find_long(find_command("profile"), "level", &several);
    options o = {0};
    char all[] = "model,layer,operator,module,nested", operators[] = "operator";
    assert_int_equal(option_take(&o, level, all), 0);
    assert_int_equal(o.shown.levels, PRONY_LEVEL_MODEL | PRONY_LEVEL_LAYER | PRONY_LEVEL_OPERATOR | PRONY_LEVEL_MODULE |
                                         PRONY_LEVEL_NESTED);
    assert_int_equal(option_take(&o, level, operators), 0);
    assert_int_equal(o.shown.levels, PRONY_LEVEL_OPERATOR);
}

/* ---- commands and their help ---- */

/* Lines of the help; fails on one of more than 80 columns. */
static size_t help_lines(const command_row *command, bool all)
{
    char *text = NULL;
    size_t size = 0, lines = 0;
    FILE *to = open_memstream(&text, &size);
    assert_non_null(to);
    print_help(to, command, all);
    assert_int_equal(fclose(to), 0);
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1, lines++)
        if (end - line > 80) fail_msg("%s --help: %.*s", command ? command->name : "", (int)(end - line), line);
    free(text);
    return lines;
}

static void test_help_fits_a_screen(void **state)
{
    (void)state;
    const command_row *command;
    const option_row *row;
    size_t first = 0;
    for (size_t i = 0; (command = command_at(i)); i++) {
        SCENARIO(i);
        const size_t lines = help_lines(command, false);
        if (lines > 60) fail_msg("prony %s --help has %zu lines, more than 60", command->name, lines);
        assert_true(help_lines(command, true) >= lines);
        assert_true(*command->name && *command->summary);
    }
    assert_true(help_lines(NULL, false) <= 60);
    assert_true(help_lines(NULL, true) > 100);
    FOR_EACH_ROW(row)
    first += row->rank == OPTION_FIRST && command_takes(find_command("profile"), row);
    assert_int_equal(first, 10);
}

/* An example goes through the parser as the shell would give it. */
static int parse_example(const char *example)
{
    char text[200], *words[32] = {(char *)(uintptr_t)"prony"}, *rest = text, *word;
    int count = 1;
    bool stop;
    options o;
    snprintf(text, sizeof text, "%s", example);
    while ((word = strsep(&rest, " "))) words[count++] = word;
    const int status = options_parse(&o, count, words, &stop);
    options_free(&o);
    return stop ? EXIT_USAGE : status;
}

static void test_examples_are_valid(void **state)
{
    (void)state;
    const command_row *command;
    for (size_t i = 0; (command = command_at(i)); i++) {
        SCENARIO(i);
        assert_non_null(command->examples[0]);
        for (size_t e = 0; e < COMMAND_EXAMPLES && command->examples[e]; e++) {
            assert_int_equal(strncmp(command->examples[e], command->name, strlen(command->name)), 0);
            if (parse_example(command->examples[e])) fail_msg("prony %s", command->examples[e]);
        }
    }
    assert_int_equal(parse_example("inspect model.onnx --runs 3"), EXIT_USAGE);
}

static void test_exact_names_come_before_abbreviations(void **state)
{
    (void)state;
    bool several;
    const command_row *run = find_command("run"), *profile = find_command("profile");
    const option_row *top = find_long(run, "top", &several); /* of other commands; `run` has --topk */
    assert_string_equal(top->name, "top");
    assert_false(command_takes(run, top));
    assert_string_equal(find_long(profile, "ru", &several)->name, "runs");
    assert_string_equal(find_long(profile, "threads", &several)->name, "intra-op");
    assert_string_equal(find_long(profile, "thr", &several)->name, "threshold");
    assert_null(find_long(profile, "no-re", &several));
    assert_true(several);
    assert_null(find_long(profile, "nothing", &several));
    assert_false(several);
    assert_null(find_long(profile, "", &several));
    assert_true(find_long(find_command("scale"), "processes", &several) != find_long(profile, "processes", &several));
}

static void test_nearest_names(void **state)
{
    (void)state;
    const command_row *profile = find_command("profile"), *verify = find_command("verify");
    assert_string_equal(nearest_option(profile, "warmpu"), "warmup");
    assert_string_equal(nearest_option(profile, "thread"), "threads");
    assert_null(nearest_option(profile, "qwertyuiop"));
    assert_null(nearest_option(verify, "warmpu"));
    assert_string_equal(nearest_command("profle"), "profile");
    assert_null(nearest_command("worke"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_and_letters_are_unique_within_a_command),
        cmocka_unit_test(test_aliases_name_one_option),
        cmocka_unit_test(test_commands_exist_and_groups_are_in_order),
        cmocka_unit_test(test_help_is_short_and_complete),
        cmocka_unit_test(test_fields_belong_to_one_option),
        cmocka_unit_test(test_defaults_and_ranges_are_accepted_and_others_refused),
        cmocka_unit_test(test_choices_are_taken_and_other_words_refused),
        cmocka_unit_test(test_choices_are_those_of_the_library),
        cmocka_unit_test(test_help_fits_a_screen),
        cmocka_unit_test(test_examples_are_valid),
        cmocka_unit_test(test_exact_names_come_before_abbreviations),
        cmocka_unit_test(test_nearest_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
