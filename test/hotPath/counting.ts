/**
 * Counts what a request costs in Effect: primitives evaluated, and fibers that evaluate any. Counts do not depend on the machine, so a budget of them is a test that cannot flake.
 */
import { Tracer } from "effect"

/** What was counted. */
export interface Counts {
  readonly primitives: number
  readonly fibers: number
}

/** A tracer that counts; `take` gives what was counted since the last time. */
export const countingTracer = (): { readonly tracer: Tracer.Tracer; readonly take: () => Counts } => {
  let primitives = 0
  let fibers = new Set<number>()
  return {
    tracer: Tracer.make({
      span: (options) => new Tracer.NativeSpan(options),
      context: (primitive, fiber) => {
        primitives++
        fibers.add(fiber.id)
        return primitive["~effect/Effect/evaluate"](fiber)
      }
    }),
    take: () => {
      const counts = { primitives, fibers: fibers.size }
      primitives = 0
      fibers = new Set()
      return counts
    }
  }
}
