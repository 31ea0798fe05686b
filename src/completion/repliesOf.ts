/**
 * Replies of a driver, for an app that has no pool. What makes them is loaded with the first request.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { GatewayError } from "../domain/GatewayError.ts"
import type { ReplyEvent } from "../domain/ReplyEvent.ts"
import type { GivenDriver } from "../upstream/makeDriver.ts"
import type { CompletionInput } from "./CompletionInput.ts"

/** Makes the replies of a driver: a function for `completionOf`. `token`: the token of its server, if it needs one. */
export const repliesOf = (driver: GivenDriver, token?: string) => {
  const loaded = Effect.runSync(
    Effect.cached(
      Effect.promise(async () => {
        const { driverReplies } = await import("./driverReplies.ts")
        return driverReplies(driver, token)
      })
    )
  )
  return (input: CompletionInput): Stream.Stream<ReplyEvent, GatewayError> =>
    Stream.unwrap(Effect.map(loaded, (replyTo) => replyTo(input)))
}
