/**
 * A begun reply as it is handed on, all of it at once or as it comes. The stream of its events is made for whoever asks for
 * one: see `PulledReply`.
 */
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { GatewayError } from "../domain/GatewayError.ts"
import type { ReplyEvent } from "../domain/ReplyEvent.ts"
import type { CompletionOutput } from "./CompletionInput.ts"
import { type Events, replyStream } from "./replyStream.ts"
import type { Batch } from "./startReply.ts"

/** A reply that is there to its end. */
export class WholeOutput implements CompletionOutput {
  readonly id: string
  readonly driver: string
  readonly whole: Batch

  constructor(id: string, driver: string, whole: Batch) {
    this.id = id
    this.driver = driver
    this.whole = whole
  }

  get events(): Stream.Stream<ReplyEvent, GatewayError> {
    return Stream.fromIterable(this.whole)
  }
}

/** A reply that comes; its attempt is closed with it. */
export class PulledOutput implements CompletionOutput {
  readonly id: string
  readonly driver: string
  readonly pull: Events
  private readonly attempt: Scope.Closeable

  constructor(id: string, driver: string, pull: Events, attempt: Scope.Closeable) {
    this.id = id
    this.driver = driver
    this.pull = pull
    this.attempt = attempt
  }

  get events(): Stream.Stream<ReplyEvent, GatewayError> {
    return replyStream(this.pull, this.attempt)
  }
}
