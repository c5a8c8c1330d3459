/* A program that links Prony: loads the model named on the command line, runs it and prints the sum of the first
 * output. */
#include <prony.h>

#include <stdio.h>

static int fail(const prony_error *error)
{
    fprintf(stderr, "%s: %s\n", prony_status_text(error->status), error->message);
    return 1;
}

int main(int argc, char **argv)
{
    prony_error error = {PRONY_OK, ""};
    prony_model *model = NULL;
    prony_session *session = NULL;
    const prony_value *output = NULL;
    if (argc != 2) return 2;
    int result = 0;
    if (prony_model_load(&model, argv[1], NULL, &error) != PRONY_OK ||
        prony_session_create(&session, model, NULL, &error) != PRONY_OK ||
        prony_session_generate_inputs(session, 0, &error) != PRONY_OK ||
        prony_session_run(session, &error) != PRONY_OK ||
        prony_session_output(session, 0, &output, &error) != PRONY_OK) {
        result = fail(&error);
    } else {
        int64_t count = prony_shape_numel(&output->shape);
        double sum = 0;
        for (int64_t i = 0; i < count; i++) sum += (double)((const float *)output->data)[i];
        printf("prony %s: %lld elements, sum %.6f\n", prony_version(), (long long)count, sum);
    }
    prony_session_release(session);
    prony_model_release(model);
    return result;
}
