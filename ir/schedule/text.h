/* Words of the text form of schedules (ir/schedule/words.c), for its printer, its parser and the verifier's sentences. */
#ifndef DLC_IR_SCHEDULE_TEXT_H
#define DLC_IR_SCHEDULE_TEXT_H

extern const char *const dlc_loop_names[];  /* by dlc_loop_kind */
extern const char *const dlc_place_names[]; /* by dlc_place */
/* Words that a name must be quoted for. */
int dlc_schedule_word_is_taken(const char *name);

#endif
