/* The nodes of a study: named in messages, and grouped into lanes. Nodes of one host share
 * its processors, so they share a lane, in which one block runs at a time. */
#include "profiler/study/study.h"

#include <stdio.h>
#include <string.h>

size_t prn_study_node_total(const prony_study *s)
{
    return s->node_count ? s->node_count : 1;
}

size_t prony_study_node_count(const prony_study *s)
{
    return s->node_count;
}

const char *prony_study_node_host(const prony_study *s, size_t node)
{
    return node < s->node_count ? s->nodes[node].host : NULL;
}

size_t prn_study_lane_of(const prony_study *s, size_t node)
{
    return node < s->node_count ? s->nodes[node].lane : 0;
}

size_t prn_study_lanes(const prony_study *s)
{
    size_t lanes = 1;
    for (size_t i = 0; i < s->node_count; i++)
        if (s->nodes[i].lane >= lanes) lanes = s->nodes[i].lane + 1;
    return lanes;
}

size_t prn_study_lane_nodes(const prony_study *s, size_t lane)
{
    size_t count = s->node_count ? 0 : 1;
    for (size_t i = 0; i < s->node_count; i++) count += s->nodes[i].lane == lane;
    return count;
}

const char *prn_study_node_label(const prony_study *s, size_t node, char text[PRN_STUDY_NODE_BYTES])
{
    const prn_study_node *n = &s->nodes[node];
    if (prn_study_lane_nodes(s, n->lane) > 1)
        snprintf(text, PRN_STUDY_NODE_BYTES, "%.120s, rank %zu", n->host, node);
    else
        snprintf(text, PRN_STUDY_NODE_BYTES, "%.120s", n->host);
    return text;
}

void prn_study_find_lanes(prony_study *s)
{
    size_t lanes = 0;
    for (size_t i = 0; i < s->node_count; i++) {
        size_t same = 0;
        while (same < i && strcmp(s->nodes[same].host, s->nodes[i].host) != 0) same++;
        s->nodes[i].lane = same < i ? s->nodes[same].lane : lanes++;
    }
}
