/* The plan as text: one line per input, output, symbol and step. */
#include "runtime/internal.h"

#include <inttypes.h>

typedef struct {
    const dlc_plan *plan;
    dlcrt_text *out;
} printer;

/* A string of the plan; what would end its line is shown as \uXXXX. */
static void print_name(const printer *p, const char *before, uint32_t string, const char *behind)
{
    dlcrt_text_add(p->out, "%s", before);
    for (const char *name = dlcrt_string(p->plan, string); *name; name++)
        dlcrt_text_add(p->out, (unsigned char)*name < ' ' ? "\\u%04x" : "%c", *name);
    dlcrt_text_add(p->out, "%s", behind);
}

/* A cell: its number, its symbol's name, or %cell. */
static void print_cell(const printer *p, uint32_t cell)
{
    const dlc_size_inst *inst = (const dlc_size_inst *)dlcrt_rows(p->plan, p->plan->insts) + cell;
    const dlc_plan_symbol *symbols = dlcrt_rows(p->plan, p->plan->symbols);
    if (inst->op == DLC_SIZE_CONST && !dlc_is_float((dlc_dtype)inst->dtype))
        dlcrt_text_add(p->out, "%" PRId64, inst->imm);
    else if (inst->op == DLC_SIZE_SYM)
        print_name(p, "", symbols[inst->args[0]].name, "");
    else
        dlcrt_text_add(p->out, "%%%u", cell);
}

static void print_insts(const printer *p)
{
    static const struct {
        const char *text;
        uint8_t nargs;
    } ops[] = {
#define DLC_SIZE(id, text, nargs) {text, nargs},
#include "dlc/size.def"
#undef DLC_SIZE
    };
    const dlc_size_inst *insts = dlcrt_rows(p->plan, p->plan->insts);
    for (uint32_t i = 0; i < p->plan->insts.count; i++) {
        if (ops[insts[i].op].nargs == 0)
            continue;
        dlcrt_text_add(p->out, "  %%%u: %s = %s", i, dlc_dtypes[insts[i].dtype].text,
                       ops[insts[i].op].text);
        for (uint32_t k = 0; k < ops[insts[i].op].nargs; k++) {
            dlcrt_text_add(p->out, " ");
            print_cell(p, insts[i].args[k]);
        }
        dlcrt_text_add(p->out, "\n");
    }
}

static void print_ref(const printer *p, const dlc_plan_ref *ref)
{
    static const char *const places[] = {"arena", "input", "output", "constants", "none", "host"};
    dlcrt_text_add(p->out, " %s ", places[ref->place]);
    if (ref->place == DLC_REF_CONSTANT)
        dlcrt_text_add(p->out, "%" PRIu64, ref->offset);
    else if (ref->place == DLC_REF_ARENA || ref->place == DLC_REF_HOST)
        print_cell(p, ref->index);
    else
        dlcrt_text_add(p->out, "%u", ref->index);
    if (ref->skip != DLC_NO_CELL) {
        dlcrt_text_add(p->out, "+");
        print_cell(p, ref->skip);
    }
    dlcrt_text_add(p->out, ":");
    print_cell(p, ref->size_bytes);
}

static void print_step(const printer *p, const dlcrt_executable *executable, uint32_t i)
{
    const dlc_plan_step *step = (const dlc_plan_step *)dlcrt_rows(p->plan, p->plan->steps) + i;
    const dlc_plan_ref *refs = dlcrt_rows(p->plan, p->plan->refs);
    const uint32_t *cells = dlcrt_rows(p->plan, p->plan->cells);
    dlcrt_step_info info;
    dlcrt_executable_step(executable, i, &info);
    dlcrt_text_add(p->out, "  %u %s", i, info.kernel);
    print_name(p, " '", step->name, "'");
    if (step->kind == DLC_DO_LAUNCH) {
        dlcrt_text_add(p->out, " units ");
        print_cell(p, step->units);
        dlcrt_text_add(p->out, " grain %" PRId64 " scratch ", step->grain);
        print_cell(p, step->scratch_bytes);
    }
    if (step->kind >= DLC_DO_SET && step->kind <= DLC_DO_LOOP) {
        dlcrt_text_add(p->out, " ");
        print_cell(p, step->units);
    }
    if (step->kind >= DLC_DO_IF)
        dlcrt_text_add(p->out, " to %u", step->what);
    for (uint32_t k = 0; k < step->symbols.count; k++) {
        dlcrt_text_add(p->out, k ? "," : " symbols ");
        print_cell(p, cells[step->symbols.first + k]);
    }
    for (uint32_t k = 0; k < step->refs.count; k++)
        print_ref(p, &refs[step->refs.first + k]);
    if (step->phase)
        dlcrt_text_add(p->out, " -> phase %u", step->phase);
    dlcrt_text_add(p->out, "\n");
}

/* Code of a kernel and what it takes of a multiprocessor, as the compiler found it. */
static void print_kernels(const printer *p)
{
    const dlc_plan_kernel *kernel = dlcrt_rows(p->plan, p->plan->kernels);
    const dlc_plan_binary *binaries = dlcrt_rows(p->plan, p->plan->binaries);
    for (uint32_t i = 0; i < p->plan->kernels.count; i++, kernel++) {
        dlcrt_text_add(p->out, "kernel %u '%s' %u threads, %u units per block\n", i,
                       dlcrt_string(p->plan, kernel->function), kernel->threads,
                       kernel->units_per_block);
        for (uint32_t k = 0; k < kernel->binaries.count; k++) {
            const dlc_plan_binary *binary = &binaries[kernel->binaries.first + k];
            if (binary->kind == DLC_BINARY_PTX)
                dlcrt_text_add(p->out, "  PTX of sm_%u, %" PRIu64 " bytes, drivers from CUDA %u.%u on\n",
                               binary->arch, binary->size_bytes, binary->driver / 1000,
                               binary->driver % 1000 / 10);
            else
                dlcrt_text_add(p->out,
                               "  sm_%u, %" PRIu64 " bytes, drivers from CUDA %u.%u on: %u registers, "
                               "%u bytes of stack, %u blocks per multiprocessor\n",
                               binary->arch, binary->size_bytes, binary->driver / 1000,
                               binary->driver % 1000 / 10, binary->registers, binary->frame_bytes,
                               binary->blocks);
        }
    }
}

static void print_tensors(const printer *p, const char *what, dlc_plan_rows rows)
{
    const dlc_plan_tensor *tensors = dlcrt_rows(p->plan, rows);
    for (uint32_t i = 0; i < rows.count; i++) {
        dlcrt_text_add(p->out, "%s %u", what, i);
        print_name(p, " '", tensors[i].name, "' ");
        print_name(p, "", tensors[i].type_text, "\n");
    }
}

size_t dlcrt_executable_print(const dlcrt_executable *executable, char *text, size_t size_bytes)
{
    if (!text)
        size_bytes = 0;
    if (size_bytes)
        text[0] = '\0';
    if (!executable)
        return 0;
    dlcrt_text out = {text, size_bytes, 0};
    const dlc_plan *plan = executable->plan;
    printer p = {plan, &out};
    const dlc_plan_symbol *symbols = dlcrt_rows(plan, plan->symbols);
    const dlc_plan_phase *phases = dlcrt_rows(plan, plan->phases);
    print_name(&p, "plan '", plan->model, "'");
    dlcrt_text_add(&out, " target %s, %u kernels, %" PRIu64 " bytes of constants\n", dlcrt_string(plan, plan->target),
                   plan->kernels.count, executable->image.entry->constants_bytes);
    print_tensors(&p, "input", plan->inputs);
    print_tensors(&p, "output", plan->outputs);
    for (uint32_t i = 0; i < plan->symbols.count; i++) {
        print_name(&p, "symbol '", symbols[i].name, "' ");
        dlcrt_text_add(&out, "%" PRId64 "..%" PRId64 "\n", symbols[i].lo, symbols[i].hi);
    }
    if (plan->binaries.count)
        print_kernels(&p);
    dlcrt_text_add(&out, "sizes\n");
    print_insts(&p);
    for (uint32_t i = 0; i < plan->phases.count; i++) {
        dlcrt_text_add(&out, "phase %u arena ", i);
        print_cell(&p, phases[i].arena_bytes);
        dlcrt_text_add(&out, " bytes\n");
    }
    dlcrt_text_add(&out, "steps\n");
    for (uint32_t i = 0; i < plan->steps.count; i++)
        print_step(&p, executable, i);
    return out.n;
}
