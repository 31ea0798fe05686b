/** A completion service that a test scripts. Whole replies are collected from the script's streams. */
import { Cause, Effect, Scope, Stream } from "effect"
import { isReadonlyArrayNonEmpty } from "effect/Array"
import { Completion } from "../../src/completion/Completion.ts"

type Service = Completion["Service"]

export const scriptedCompletion = (stream: Service["stream"]): Service => {
  const whole: Service["whole"] = (input) =>
    Effect.flatMap(
      stream(input),
      ({ events, ...output }) =>
        Effect.flatMap(Stream.runCollect(events), (all) =>
          isReadonlyArrayNonEmpty(all)
            ? Effect.succeed({ ...output, events: all })
            : Effect.die(new Cause.NoSuchElementError("A scripted reply without events")))
    )
  return Completion.of({
    stream,
    whole,
    together: (input, make) =>
      Effect.flatMap(Effect.scope, (scope) =>
        make({
          stream: (asked) => Effect.provideService(stream({ ...input, ...asked }), Scope.Scope, scope),
          whole: (asked) => Effect.provideService(whole({ ...input, ...asked }), Scope.Scope, scope)
        })),
    count: () => Effect.succeed(undefined),
    forget: () => Effect.void,
    passesWhole: () => false,
    compactor: () => undefined
  })
}
