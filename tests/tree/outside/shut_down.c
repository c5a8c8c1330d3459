/* Runs a model on three threads; with a second argument it ends its worker threads. check_valgrind.sh looks for
 * leaks. */
#include <prony.h>

#include <stdio.h>

int main(int argc, char **argv)
{
    prony_error error = {PRONY_OK, {0}};
    prony_model *model = NULL;
    prony_session *session = NULL;
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    options.intra_op_threads = 3;
    prony_status status = argc < 2 ? PRONY_INVALID_ARGUMENT : prony_model_load(&model, argv[1], NULL, &error);
    if (status == PRONY_OK) status = prony_session_create(&session, model, &options, &error);
    if (status == PRONY_OK) status = prony_session_generate_inputs(session, 1, &error);
    for (int run = 0; run < 3 && status == PRONY_OK; run++) status = prony_session_run(session, &error);
    if (status != PRONY_OK) fprintf(stderr, "%s: %s\n", prony_status_text(status), error.message);
    prony_session_release(session);
    prony_model_release(model);
    if (argc > 2) prony_threads_shut_down();
    return status == PRONY_OK ? 0 : 1;
}
