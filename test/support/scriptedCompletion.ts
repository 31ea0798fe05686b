/** A completion service that a test scripts. Whole replies are collected from the script's streams. */
import { Cause, Effect, Stream } from "effect"
import { isReadonlyArrayNonEmpty } from "effect/Array"
import { Completion } from "../../src/completion/Completion.ts"

export const scriptedCompletion = (stream: Completion["Service"]["stream"]): Completion["Service"] =>
  Completion.of({
    stream,
    count: () => Effect.succeed(undefined),
    whole: (input) =>
      Effect.flatMap(stream(input), ({ events, ...output }) =>
        Effect.flatMap(Stream.runCollect(events), (all) =>
          isReadonlyArrayNonEmpty(all)
            ? Effect.succeed({ ...output, events: all })
            : Effect.die(new Cause.NoSuchElementError("A scripted reply without events"))))
  })
