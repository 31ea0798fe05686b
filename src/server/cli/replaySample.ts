/**
 * Plays a saved sample through a gateway in this process.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { PlayedStyle, SamplePrompt as Ask } from "../../styles/Style.ts"
import { playSample } from "../replay.ts"

/** The sample is not there, or its recorded replies make none. */
export class NotReplayed extends Schema.TaggedError<NotReplayed>()("NotReplayed", { message: Schema.String }) {}

/** The message of every style's error body. */
const errorMessage = Schema.decodeUnknownEffect(
  Schema.fromJsonString(Schema.Struct({ error: Schema.Struct({ message: Schema.String }) }))
)

/** Which sample to play, and how. */
export interface Replay extends Omit<Ask, "text"> {
  /** The folder of samples. */
  readonly dir: string
  readonly id: string
  readonly style: PlayedStyle
}

/** The reply's bytes. Fails with what a caller would be told where there is no such sample. */
export const replaySample = ({ id, ...replay }: Replay) =>
  Effect.gen(function*() {
    const response = yield* playSample({ id, ...replay })
    const failed = (message: string) => new NotReplayed({ message: `${id} in ${replay.dir}: ${message}` })
    if (!response.ok) {
      const { error } = yield* Effect.orDie(errorMessage(yield* Effect.promise(() => response.text())))
      return yield* failed(error.message)
    }
    const reply = response.body
    return reply === null
      ? Stream.empty
      : Stream.fromReadableStream({ evaluate: () => reply, onError: (error) => failed(String(error)) })
  }).pipe(Effect.provide(NodeServices.layer))
