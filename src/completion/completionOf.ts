/**
 * Completions of an app, made of one function.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Pull from "effect/Pull"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { type GatewayError, gatewayError } from "../domain/GatewayError.ts"
import type { ReplyEvent } from "../domain/ReplyEvent.ts"
import { peel, pullOf, transduce } from "../domain/stream/transduce.ts"
import type { FailingMachine } from "../domain/stream/transducer.ts"
import { collectReply } from "./collectReply.ts"
import { Completion } from "./Completion.ts"
import type { CompletionInput, CompletionOutput } from "./CompletionInput.ts"

const noEnd = gatewayError("internal_error", "The reply has no end")

/** Completions that open each reply by `stream`. They count no tokens, and stand before no server. */
export const completionBy = (stream: Completion["Service"]["stream"]): Completion["Service"] => {
  const whole: Completion["Service"]["whole"] = (input) =>
    Effect.flatMap(
      Effect.scope,
      (scope) =>
        Effect.flatMap(stream(input), ({ events, ...output }) =>
          Effect.flatMap(pullOf(events, scope), (pull) =>
            Pull.matchEffect(pull, {
              onSuccess: (first) =>
                Effect.map(collectReply(first, pull), (all) => ({ ...output, events: all })),
              onFailure: Effect.failCause,
              onDone: () => Effect.fail(noEnd)
            })))
    )
  return Completion.of({
    stream,
    whole,
    together: (input, make) =>
      Effect.flatMap(Effect.scope, (scope) =>
        make({
          stream: ({ conversation }) => Scope.provide(stream({ ...input, conversation }), scope),
          whole: ({ conversation }) => Scope.provide(whole({ ...input, conversation }), scope)
        })),
    count: () => Effect.succeed(undefined),
    forget: () => Effect.void,
    passesWhole: () => false,
    compactor: () => undefined
  })
}

/** Passes the events of a reply up to its `Finish`. Fails with `internal_error` without one. */
class ToFinish implements FailingMachine<ReplyEvent, ReplyEvent, GatewayError> {
  isOver = false
  #error: GatewayError | undefined

  push(event: ReplyEvent, out: Array<ReplyEvent>): void {
    if (this.isOver) return
    out.push(event)
    this.isOver = event._tag === "Finish"
  }

  end(): void {
    if (!this.isOver) this.#error = noEnd
  }

  failure(): GatewayError | undefined {
    return this.#error
  }
}

const toFinish = transduce<ReplyEvent, ReplyEvent, GatewayError, ToFinish>(
  () => new ToFinish(),
  ({ isOver }) => isOver
)

/**
 * Completions as a function from a conversation to the events of its reply. The stream ends with `Finish`, or fails with the error to send; a
 * failure before its first events has its own HTTP status. It is interrupted when the client leaves.
 */
export const completionOf = <R = never>(
  replyTo: (input: CompletionInput) => Stream.Stream<ReplyEvent, GatewayError, R>
): Layer.Layer<Completion, never, R> =>
  Layer.effect(
    Completion,
    Effect.map(Effect.context<R>(), (context) =>
      completionBy((input) =>
        Effect.flatMap(Effect.scope, (scope) =>
          Effect.map(
            Pull.catchDone(peel(toFinish(Stream.provideContext(replyTo(input), context)), scope), () =>
              Effect.fail(noEnd)),
            ([first, rest]): CompletionOutput => ({
              id: crypto.randomUUID().replaceAll("-", ""),
              driver: "",
              maker: undefined,
              events: Stream.concat(Stream.fromArray(first), rest)
            })
          ))
      ))
  )
