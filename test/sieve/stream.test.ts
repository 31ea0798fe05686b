/** The sieve's machine on a `Stream`. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { TextDelta } from "../../src/domain/ReplyEvent.ts"
import { sieve, type SieveEvent } from "../../src/sieve.ts"
import { callId, feed, replyOf, tools } from "./support.ts"

describe("the sieve on a Stream", () => {
  it.effect("emits the same events as without a stream", () =>
    Effect.gen(function*() {
      const pieces = [
        "Let me look. <tool_",
        "call>{\"name\":\"wx\",\"argu",
        "ments\":{\"city\":\"Os",
        "lo\"}}</tool_call",
        "> Done <"
      ]
      const events = yield* Stream.fromIterable(pieces).pipe(
        Stream.rechunk(2),
        Stream.mapAccumArray(
          sieve({ tools, callId }),
          (machine, pieces) => {
            const events: Array<SieveEvent> = []
            for (const piece of pieces) machine.push(piece, events)
            return [machine, events] as const
          },
          {
            onHalt: (machine) => {
              const events: Array<SieveEvent> = []
              machine.end(events)
              return events
            }
          }
        ),
        Stream.runCollect
      )
      assert.deepStrictEqual(events, feed(pieces))
      assert.deepStrictEqual(replyOf(events), [
        "Let me look. ",
        { name: "wx", arguments: "{\"city\":\"Oslo\"}", isFinished: true },
        " Done <"
      ])
      assert.deepStrictEqual(events[events.length - 1], TextDelta("<"))
    }))
})
