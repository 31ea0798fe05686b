/**
 * A completion that is read by its pull. The stream of it is made for whoever asks for one, and for nobody else: the library's
 * streams hold what they are made of in a function that V8 puts among the old objects at once, and all that a reply holds
 * would stay with it until the next collection of those.
 */
import type { NonEmptyReadonlyArray } from "effect/Array"
import * as Effect from "effect/Effect"
import type * as Pull from "effect/Pull"
import * as Stream from "effect/Stream"
import type { UpstreamEvent } from "../domain/UpstreamEvent.ts"
import type { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import type { CompletionReply } from "./Upstream.ts"

/** Made by drivers; its stream and its pull are the same reply, for one reader. */
export class PulledReply implements CompletionReply {
  readonly id: string
  readonly sessionId: string | undefined
  readonly pull: Pull.Pull<NonEmptyReadonlyArray<UpstreamEvent>, UpstreamFailure>
  readonly isOver: () => boolean

  constructor(
    id: string,
    sessionId: string | undefined,
    pull: Pull.Pull<NonEmptyReadonlyArray<UpstreamEvent>, UpstreamFailure>,
    isOver: () => boolean
  ) {
    this.id = id
    this.sessionId = sessionId
    this.pull = pull
    this.isOver = isOver
  }

  get events(): Stream.Stream<UpstreamEvent, UpstreamFailure> {
    return Stream.fromPull(Effect.succeed(this.pull))
  }
}
