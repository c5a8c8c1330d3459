/* The least time of a bare prony_session_run, ns: call_cost MODEL CALLS. Started by call_cost.py. */
#include "prony.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    prony_error error = {PRONY_OK, {0}};
    prony_model *model = NULL;
    prony_session *session = NULL;
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    options.intra_op_threads = 1;
    options.no_profile = true;
    int calls = argc > 2 ? atoi(argv[2]) : 1000;
    prony_status status = prony_model_load(&model, argv[1], NULL, &error);
    if (status == PRONY_OK) status = prony_session_create(&session, model, &options, &error);
    if (status == PRONY_OK) status = prony_session_generate_inputs(session, 0, &error);
    if (status == PRONY_OK) status = prony_session_run(session, &error);
    int64_t start = prony_now_ns();
    for (int i = 0; i < calls && status == PRONY_OK; i++) status = prony_session_run(session, &error);
    if (status == PRONY_OK)
        printf("%f\n", (double)(prony_now_ns() - start) / calls);
    else
        fprintf(stderr, "%s\n", error.message);
    prony_session_release(session);
    prony_model_release(model);
    return status != PRONY_OK;
}
