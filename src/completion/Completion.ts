/**
 * Runs completions: from a conversation through admission, an account and attempts with failover to the reply's events.
 *
 * `stream` returns at the first reply event, `whole` at the last one. Until then nothing has been sent, and a failed attempt may
 * be retried; after that a failure ends the stream.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import * as Scope from "effect/Scope"
import { Accounts, type Caller } from "../accounts/Accounts.ts"
import { startCooperatively } from "../config/clock/cooperative.ts"
import { Deadlines } from "../config/clock/Deadlines.ts"
import { estimateConversation, estimateCooperatively } from "../domain/estimateConversation.ts"
import { type GatewayError, gatewayError } from "../domain/GatewayError.ts"
import type { Maker } from "../domain/makers.ts"
import { isServer } from "../domain/protocols.ts"
import type { Route } from "../domain/routes.ts"
import { monotonicMillis } from "../domain/time.ts"
import type { FamilyName } from "../domain/VendorFields.ts"
import { Captures } from "../recordings/Captures.ts"
import { RequestBudget } from "../upstream/budget.ts"
import { type Driver, servingDriver } from "../upstream/Upstream.ts"
import { KeyLimits } from "../usage/KeyLimits.ts"
import { admitRequest, keyOf } from "./admission.ts"
import { Attempts } from "./attempts.ts"
import { CompletionAttempt } from "./CompletionAttempt.ts"
import type { CompletedReply, CompletionInput, CompletionOutput } from "./CompletionInput.ts"
import { countUpstream } from "./countUpstream.ts"
import { type OpenReply, streamOf, wholeOf } from "./openReply.ts"
import { startsNextReply } from "./RequestStats.ts"
import { CurrentSharedCalls, SealedCalls } from "./SealedCalls.ts"
import { replyStarter } from "./startReply.ts"
import { hasOwnTools, toolChoiceFault } from "./toolPolicy.ts"
import { noteUnsentFields } from "./unsentFields.ts"

export type { CompletedReply, CompletionInput, CompletionOutput }

/** Milliseconds that a caller waits for the deletion of the server's copy of a response. */
const longestForgetting = 5_000

const tooMuchHeld = gatewayError(
  "rate_limit_exceeded",
  "All requests together hold too much memory (limits.buffered_bytes)",
  { retryAfter: 5 }
)

const isTooLong = (error: GatewayError): boolean => error.code === "context_length_exceeded"

/** Runs completions. */
export class Completion extends Context.Service<Completion, {
  /**
   * Starts a reply. Fails with the error to send if no attempt succeeds. The scope holds the account and the connection; closing
   * it early stops the upstream.
   */
  readonly stream: (input: CompletionInput) => Effect.Effect<CompletionOutput, GatewayError, Scope.Scope>
  /** Makes a whole reply: every failure up to its end may be retried. */
  readonly whole: (input: CompletionInput) => Effect.Effect<CompletedReply, GatewayError, Scope.Scope>
  /** Deletes a response that an account's server stores, as far as the server does that in time. */
  readonly forget?: (caller: Caller, maker: Maker, id: string) => Effect.Effect<void>
  /** Counts the tokens of a conversation; `undefined` if the upstream counts none, or has no slot free now. The scope holds the limits. */
  readonly count: (input: CompletionInput) => Effect.Effect<number | undefined, GatewayError, Scope.Scope>
  /**
   * The targets of the route that may get a request of this contract as its caller wrote it. `all`: always, at servers of one upstream.
   */
  readonly passesWhole?: (route: Route, family: FamilyName) => "all" | "some" | undefined
}>()("model-gateway/completion/Completion") {
  static readonly make = Effect.gen(function*() {
    const accounts = yield* Accounts
    const captures = yield* Captures
    const keyLimits = yield* KeyLimits
    const deadlines = yield* Deadlines
    const clock = yield* Clock.Clock
    const sealed = new SealedCalls(() => monotonicMillis(clock), yield* CurrentSharedCalls)
    const startReply = replyStarter(captures, sealed)

    /** Validates `tool_choice` and applies the limits of the key. */
    const admitted = <A, R>(
      input: CompletionInput,
      then: () => Effect.Effect<A, GatewayError, R>
    ): Effect.Effect<A, GatewayError, R | Scope.Scope> => {
      const { caller, conversation } = input
      // An attempt knows whether the upstream has tools of its own.
      const fault = hasOwnTools(conversation) ? undefined : toolChoiceFault(conversation)
      if (fault !== undefined) return Effect.fail(fault)
      const admit = () => admitRequest(keyLimits, input, () => estimateConversation(conversation), then)
      return keyLimits.countsTokens(keyOf(caller))
        ? Effect.flatMapEager(startCooperatively(estimateCooperatively(conversation)), admit)
        : admit()
    }

    const opened = <A>(
      input: CompletionInput,
      clock: Clock.Clock,
      scope: Scope.Scope,
      traced: boolean,
      whole: boolean,
      output: (reply: OpenReply) => Effect.Effect<A>
    ) => {
      const attempted = <A>(
        input: CompletionInput,
        whole: boolean,
        output: (reply: OpenReply) => Effect.Effect<A>
      ): Effect.Effect<A, GatewayError> => {
        const { config, request: { held } } = input
        if (!held.add(0)) return Effect.fail(tooMuchHeld)
        const keepsReply = whole || input.kept === true
        const work = new CompletionAttempt(input, {
          startReply,
          sealed,
          deadlines,
          makeBudget: () => new RequestBudget(config.limits, clock, held, keepsReply),
          scope,
          whole,
          output
        })
        const opening = new Attempts(work, { accounts, deadlines, config, scope, traced }).open()
        if (input.shorter === undefined) return opening
        return Effect.catchIf(opening, isTooLong, (error) => {
          const shorter = input.shorter?.()
          return shorter === undefined
            ? Effect.fail(error)
            : attempted({ ...input, conversation: shorter, shorter: undefined }, whole, output)
        })
      }
      return admitted(input, () => {
        const { before } = input
        if (before === undefined) return attempted(input, whole, output)
        const { conversation, shorter } = before
        return attempted({ ...input, conversation, shorter }, true, wholeOf).pipe(
          Effect.tap(() => Effect.sync(() => startsNextReply(input.request.stats))),
          Effect.flatMap(before.next),
          Effect.flatMap((conversation) => attempted({ ...input, conversation }, whole, output))
        )
      })
    }

    const open = <A>(
      input: CompletionInput,
      whole: boolean,
      output: (reply: OpenReply) => Effect.Effect<A>
    ): Effect.Effect<A, GatewayError, Scope.Scope> =>
      Effect.withFiber((fiber) => {
        input.request.followers.recording?.decoded(input.conversation)
        const scope = Context.getUnsafe(fiber.context, Scope.Scope)
        const traced = fiber.getRef(References.TracerEnabled)
        const { caller: { owner }, config: { upstreams }, conversation, model: { targets } } = input
        const run = () => opened(input, fiber.getRef(Clock.Clock), scope, traced, whole, output)
        // Only servers have such fields.
        const hasServer = targets.some(({ upstream }) => isServer(upstreams.get(upstream)?.driver ?? "embedded"))
        const lookUp = hasServer ? sealed.lookUp(owner, conversation) : undefined
        const opening = lookUp === undefined ? run() : Effect.flatMap(lookUp, run)
        return traced
          ? Effect.withSpan("Completion.open", {}, { captureStackTrace: false })(opening)
          : opening
      })

    return Completion.of({
      stream: (input) => open(input, false, (reply) => Effect.succeed(streamOf(reply))),
      whole: (input) => open(input, true, wholeOf),
      forget: (caller, maker, id) => {
        const on = (driver: Driver | undefined, token: string | undefined) =>
          driver?.seals?.forget(token, id) ?? Effect.void
        const forgotten = caller._tag === "Direct"
          ? on(accounts.driverOf(maker.upstream), caller.token)
          : Effect.flatMap(
            accounts.accessOf(maker),
            ({ credential, driver }) => Effect.flatMap(credential.token, (token) => on(driver, token))
          )
        return Effect.ignore(Effect.timeoutOption(forgotten, longestForgetting))
      },
      passesWhole: ({ targets }, family) => {
        const drivers = targets.map(({ upstream }) => accounts.driverOf(upstream))
        const isAll = drivers.every((driver) => driver?.family === family && driver.families === undefined)
        return isAll && targets.every(({ upstream }) => upstream === targets[0]?.upstream)
          ? "all"
          : drivers.some((driver) => driver?.family === family || driver?.families?.includes(family) === true)
          ? "some"
          : undefined
      },
      count: (input) =>
        Effect.suspend(() => {
          const { conversation } = input
          const counting = input.model.targets.flatMap(({ enabled, model, upstream }) => {
            const driver = enabled ? accounts.driverOf(upstream) : undefined
            return driver?.countTokens === undefined
              ? []
              : [servingDriver(driver, model, conversation, deadlines.now())]
          })[0]
          return admitRequest(keyLimits, input, undefined, () => {
            const unsent = noteUnsentFields(conversation, input.request, counting)
            if (unsent !== undefined) return Effect.fail(unsent)
            return counting === undefined ? Effect.succeed(undefined) : countUpstream(accounts, deadlines, input)
          })
        })
    })
  })

  static readonly layer: Layer.Layer<
    Completion,
    never,
    Accounts | Captures | Deadlines | KeyLimits
  > = Layer.effect(
    Completion,
    Completion.make
  )
}
