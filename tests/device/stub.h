/* What tests of plans on a CUDA device share: an executable made in memory, with binaries that are made up and kernels of the tests' own
 * behind the virtual GPU's driver (vgpu/control.h), so neither a GPU nor NVRTC is needed. */
#ifndef DLC_TESTS_DEVICE_STUB_H
#define DLC_TESTS_DEVICE_STUB_H

#include "dlc/runtime.h"
#include "package/plan.h"
#include "tests/unit/made_model.h"
#include "tests/unit/suite.h"
#include "vgpu/control.h"

enum { MAX_PLANS = 4, N = 8 };
enum { PTX_AT = 32, STUB_CODE_BYTES = 64 };

extern const char no_code[STUB_CODE_BYTES]; /* a cubin and a PTX text, for all the driver knows */
extern const dlc_kernel_fn no_functions[8];
extern dlc_plan_entry entries[MAX_PLANS];
extern dlc_pieces constants;
extern dlc_executable image;
extern dlcrt_executable *executable;
extern const vgpu_control *stub;
extern uint32_t fixed_bytes[2]; /* shared memory of the first kernels of plans to come; 0: what they need */
extern const vgpu_kernels one_row, many_rows, faulty, faulty_rows;
extern const char *const symbols[];
extern const size_t nsymbols;

#define OK(call) ck_assert_msg((call) == DLC_OK, "%s", dlcrt_last_error())

void use_stub(void);
/* Plan i of the executable: the model for a target. */
void add_plan(uint32_t i, made_model m, const char *target);
/* All constants, where the plans have them. */
void close_image(void);
dlc_status open_on(const char *device);
void teardown(void);
/* y = x + c over f32[n,8], n a number or a symbol (0) */
made_model add_model(int64_t rows);
void open_static(void);
dlcrt_tensor row_of(float *data, int64_t rows);
dlc_status run_once(dlcrt_context *context, float start);

/* The tests of a file each. */
void add_plan_tests(TCase *tests);
void add_failure_tests(TCase *tests);

#endif
