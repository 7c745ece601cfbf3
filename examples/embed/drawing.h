/* A digit to recognise, and which of ten logits is the largest. */
#ifndef DRAWING_H
#define DRAWING_H

static const float drawing[8][8] = {
    {0, 0, 1, 1, 1, 1, 0, 0},
    {0, 1, 1, 0, 0, 1, 1, 0},
    {0, 0, 0, 0, 0, 1, 1, 0},
    {0, 0, 0, 1, 1, 1, 0, 0},
    {0, 0, 0, 0, 0, 1, 1, 0},
    {0, 0, 0, 0, 0, 1, 1, 0},
    {0, 1, 1, 0, 0, 1, 1, 0},
    {0, 0, 1, 1, 1, 1, 0, 0},
};

static inline int largest(const float logits[10])
{
    int best = 0;
    for (int i = 1; i < 10; i++)
        best = logits[i] > logits[best] ? i : best;
    return best;
}

#endif
