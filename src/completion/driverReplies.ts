/**
 * Replies of a driver, for an app that has no pool: by the machines of the gateway's own replies, and without failover.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { CurrentLimits } from "../config/limits.ts"
import { classify } from "../domain/classifyUpstreamFailure.ts"
import { plainContext } from "../domain/failureRules.ts"
import { GatewayError } from "../domain/GatewayError.ts"
import type { ReplyEvent } from "../domain/ReplyEvent.ts"
import { monotonicMillis } from "../domain/time.ts"
import { RequestBudget } from "../upstream/budget.ts"
import { type GivenDriver, makeDriver } from "../upstream/makeDriver.ts"
import { servingDriver } from "../upstream/Upstream.ts"
import type { CompletionInput } from "./CompletionInput.ts"
import { type ReplyLease, replyStarter } from "./startReply.ts"
import { hasOwnTools, toolChoiceFault } from "./toolPolicy.ts"

const startReply = replyStarter({ recorder: () => undefined }, {
  isShared: false,
  keep: () => undefined,
  keepMaker: () => undefined
})

export const driverReplies = (given: GivenDriver, token: string | undefined) => {
  const driver = makeDriver(given)
  const lease: ReplyLease = {
    account: undefined,
    upstream: driver.name,
    credential: { token: Effect.succeed(token), renew: () => Effect.succeed(token) },
    registerSession: undefined
  }
  return (input: CompletionInput): Stream.Stream<ReplyEvent, GatewayError> =>
    Stream.unwrap(Effect.gen(function*() {
      const { conversation, model, request } = input
      const fault = hasOwnTools(conversation) ? undefined : toolChoiceFault(conversation)
      if (fault !== undefined) return yield* fault
      const clock = yield* Clock.Clock
      const limits = yield* CurrentLimits
      const reply = yield* startReply(
        {
          ...input,
          budget: new RequestBudget(limits(), clock, request.held, input.kept),
          isWhole: false,
          driver: servingDriver(driver, model, conversation, monotonicMillis(clock)),
          leastCached: undefined,
          most: undefined,
          onChanged: () => undefined,
          stripsMarkers: true
        },
        lease,
        yield* Effect.scope
      )
      return reply.events
    })).pipe(
      Stream.mapError((failure) =>
        failure instanceof GatewayError
          ? failure
          : classify(failure, {
            ...plainContext,
            upstream: driver.name,
            alone: true,
            secrets: token === undefined ? [] : [token]
          })
            .error
      )
    )
}
