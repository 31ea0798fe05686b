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
import { Accounts } from "../accounts/Accounts.ts"
import { hasBudgets } from "../accounts/budgets.ts"
import { Threads } from "../accounts/Threads.ts"
import type { Account } from "../config/Account.ts"
import { startCooperatively } from "../config/clock/cooperative.ts"
import { Deadlines } from "../config/clock/Deadlines.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import { isServer } from "../contracts/drivers.ts"
import { estimateConversation, estimateCooperatively } from "../domain/estimateConversation.ts"
import { type GatewayError, gatewayError } from "../domain/GatewayError.ts"
import type { Route, Target } from "../domain/routes.ts"
import { monotonicMillis } from "../domain/time.ts"
import { Captures } from "../recordings/Captures.ts"
import { RequestBudget } from "../upstream/budget.ts"
import { type Driver, servingDriver } from "../upstream/Upstream.ts"
import type { Admitted } from "../usage/Admission.ts"
import { KeyLimits } from "../usage/KeyLimits.ts"
import { admitRequest, keyOf } from "./admission.ts"
import { Attempts } from "./attempts.ts"
import { boundsOf } from "./bounds.ts"
import { Completion } from "./Completion.ts"
import { choosesByWindow, CompletionAttempt } from "./CompletionAttempt.ts"
import type { Asked, CompletionInput, CompletionOutput, ServedInput } from "./CompletionInput.ts"
import { countUpstream } from "./countUpstream.ts"
import { carrying } from "./fallback.ts"
import { type OpenReply, streamOf, wholeOf } from "./openReply.ts"
import { type RequestStats, startsNextReply } from "./RequestStats.ts"
import { CurrentSharedCalls, SealedCalls } from "./SealedCalls.ts"
import { replyStarter } from "./startReply.ts"
import { hasOwnTools, toolChoiceFault } from "./toolPolicy.ts"
import { noteUnsentFields } from "./unsentFields.ts"

/** Milliseconds that a caller waits for the deletion of the server's copy of a response. */
const longestForgetting = 5_000

const tooMuchHeld = gatewayError(
  "rate_limit_exceeded",
  "The gateway is busy: too many large requests are in progress. Retry later.",
  { retryAfter: 5, cause: { setting: "limits.buffered_bytes" } }
)

const isTooLong = (error: GatewayError): boolean => error.code === "context_length_exceeded"

const streaming = (reply: OpenReply): Effect.Effect<CompletionOutput> => Effect.succeed(streamOf(reply))

/** True if one account of an upstream reads what another one has sealed, as far as the configuration says. */
const isOneOrganization = (accounts: ReadonlyArray<Account>, name: string): boolean => {
  const used = accounts.filter(({ disabled, upstream }) => upstream === name && !disabled)
  const organization = used[0]?.organization
  return used.length < 2 ||
    (organization !== undefined && used.every((account) => account.organization === organization))
}

/** Fails with the refusal of a limit whose fallback cannot serve a request. */
const refusedBy = (refusal: GatewayError, stats: RequestStats): Effect.Effect<never, GatewayError> =>
  Effect.suspend(() => {
    stats.fallback = undefined
    return Effect.fail(refusal)
  })

/** What a request is before its admission. */
const notAdmitted = { shorter: undefined, isStrict: false, refusal: undefined }

const makeCompletion = Effect.gen(function*() {
  const accounts = yield* Accounts
  const captures = yield* Captures
  const store = yield* ConfigStore
  const keyLimits = yield* KeyLimits
  const deadlines = yield* Deadlines
  const clock = yield* Clock.Clock
  const sealed = new SealedCalls(() => monotonicMillis(clock), yield* CurrentSharedCalls)
  const startReply = replyStarter(captures, sealed)
  const caches = {
    threads: new Threads(),
    accounts,
    now: () => deadlines.now(),
    unixNow: () => clock.currentTimeMillisUnsafe()
  }

  /** Validates `tool_choice` and applies the limits of the key. */
  const admitted = <A, R>(
    input: ServedInput,
    then: (input: ServedInput) => Effect.Effect<A, GatewayError, R>
  ): Effect.Effect<A, GatewayError, R | Scope.Scope> => {
    const { caller, conversation } = input
    // An attempt knows whether the upstream has tools of its own.
    const fault = hasOwnTools(conversation) ? undefined : toolChoiceFault(conversation)
    if (fault !== undefined) return Effect.fail(fault)
    const counts = keyLimits.countsTokens(keyOf(caller))
    const promptTokens = () => estimateConversation(conversation)
    const bounds = counts
      ? (model: Route) => boundsOf(input, model, promptTokens(), accounts.driverOf, deadlines.now())
      : undefined
    const served = ({ fallback, strict }: Admitted) => {
      if (fallback === undefined) return strict === undefined ? then(input) : then({ ...input, isStrict: true })
      return Effect.flatMapEager(startCooperatively(estimateCooperatively(conversation)), () => {
        const model = carrying(input, fallback.model, promptTokens())
        return model === undefined
          ? refusedBy(fallback.refusal, input.request.stats)
          : then({ ...input, model, refusal: fallback.refusal, isStrict: strict !== undefined })
      })
    }
    const admit = () => admitRequest(keyLimits, input, promptTokens, served, { bounds, takesFallback: true })
    return counts
      ? Effect.flatMapEager(startCooperatively(estimateCooperatively(conversation)), admit)
      : admit()
  }

  const attempting = (clock: Clock.Clock, scope: Scope.Scope, traced: boolean) => {
    const attempted = <A>(
      input: ServedInput,
      whole: boolean,
      output: (reply: OpenReply) => Effect.Effect<A>
    ): Effect.Effect<A, GatewayError> => {
      const { config, request: { held } } = input
      if (!held.add(0)) return Effect.fail(tooMuchHeld)
      const keepsReply = whole || input.kept
      const work = new CompletionAttempt(input, {
        startReply,
        sealed,
        caches,
        deadlines,
        driverOf: accounts.driverOf,
        makeBudget: () => new RequestBudget(config.limits, clock, held, keepsReply),
        scope,
        whole,
        output
      })
      const open = () => new Attempts(work, { accounts, deadlines, config, scope, traced }).open()
      const opening = choosesByWindow(input) || hasBudgets(config)
        ? Effect.flatMapEager(startCooperatively(estimateCooperatively(input.conversation)), open)
        : open()
      const { refusal, request: { stats }, shorter } = input
      if (shorter === undefined && refusal === undefined) return opening
      return Effect.catch(opening, (error) => {
        const again = isTooLong(error) ? shorter?.() : undefined
        if (again !== undefined) {
          return attempted({ ...input, conversation: again, shorter: undefined }, whole, output)
        }
        if (refusal === undefined || !(error === work.refusal || isTooLong(error))) return Effect.fail(error)
        return refusedBy(refusal, stats)
      })
    }
    return attempted
  }

  /** Opens what `make` makes with attempts. `replies`: of how many replies it is made. */
  const open = <A>(
    asked: CompletionInput,
    make: (attempted: ReturnType<typeof attempting>, input: ServedInput) => Effect.Effect<A, GatewayError>,
    replies = 1
  ): Effect.Effect<A, GatewayError, Scope.Scope> =>
    Effect.withFiber((fiber) => {
      const input: ServedInput = { ...asked, ...notAdmitted, replies, config: store.now() }
      input.request.followers.recording?.decoded(input.conversation)
      const scope = Context.getUnsafe(fiber.context, Scope.Scope)
      const traced = fiber.getRef(References.TracerEnabled)
      const { caller: { owner }, config: { upstreams }, conversation, model: { targets } } = input
      // Only servers have such fields.
      const lookUpFor = (targets: ReadonlyArray<Target>) =>
        targets.some(({ upstream }) => isServer(upstreams.get(upstream)?.driver ?? ""))
          ? sealed.lookUp(owner, conversation)
          : undefined
      const lookUp = lookUpFor(targets)
      const run = () =>
        admitted(input, (served) => {
          const opening = () => make(attempting(fiber.getRef(Clock.Clock), scope, traced), served)
          const later = served.model === input.model || lookUp !== undefined
            ? undefined
            : lookUpFor(served.model.targets)
          return later === undefined ? opening() : Effect.flatMap(later, opening)
        })
      const opening = lookUp === undefined ? run() : Effect.flatMap(lookUp, run)
      return traced
        ? Effect.withSpan("Completion.open", {}, { captureStackTrace: false })(opening)
        : opening
    })

  return Completion.of({
    stream: (input) => open(input, (attempted, served) => attempted(served, false, streaming)),
    whole: (input) => open(input, (attempted, served) => attempted(served, true, wholeOf)),
    together: (input, make) =>
      // A compaction and the reply after it.
      open(input, (attempted, served) => {
        let count = 0
        const next = <A>(asked: Asked, whole: boolean, output: (reply: OpenReply) => Effect.Effect<A>) =>
          Effect.suspend(() => {
            if (count++ > 0) startsNextReply(input.request.stats)
            return attempted({ ...served, ...asked }, whole, output)
          })
        return make({
          stream: (asked) => next(asked, false, streaming),
          whole: (asked) => next(asked, true, wholeOf)
        })
      }, 2),
    forget: (caller, maker, id) => {
      if (caller._tag === "Direct" && store.now().auth.direct_upstream !== maker.upstream) return Effect.void
      const on = (driver: Driver | undefined, token: string | undefined) =>
        driver?.capabilities.seals?.forget(token, id) ?? Effect.void
      const forgotten = caller._tag === "Direct"
        ? on(accounts.driverOf(maker.upstream), caller.token)
        : Effect.flatMap(
          accounts.access(maker),
          ({ credential, driver }) => Effect.flatMap(credential.token, (token) => on(driver, token))
        )
      return Effect.ignore(Effect.timeoutOption(forgotten, longestForgetting))
    },
    passesWhole: ({ targets }, family) =>
      targets.some(({ upstream }) => {
        const driver = accounts.driverOf(upstream)
        return driver?.contract === family || driver?.capabilities.contracts?.all.includes(family) === true
      }),
    compactor: ({ targets }, caller) => {
      const found = targets.map(({ upstream }) => accounts.driverOf(upstream)?.capabilities.compaction)
      if (!found.every((compaction) => compaction?.works(deadlines.now()) === true)) return undefined
      const [first] = targets
      const isAlone = first !== undefined && targets.every(({ upstream }) => upstream === first.upstream) &&
        accounts.driverOf(first.upstream)?.capabilities.contracts === undefined &&
        (caller._tag === "Direct" || isOneOrganization(store.now().accounts, first.upstream))
      return isAlone || found.every((compaction) => compaction?.always === true)
        ? { failed: () => found.forEach((compaction) => compaction?.failed(deadlines.now())) }
        : undefined
    },
    count: (input) =>
      Effect.suspend(() => {
        const { conversation } = input
        const counting = input.model.targets.flatMap(({ enabled, model, upstream }) => {
          const driver = enabled ? accounts.driverOf(upstream) : undefined
          return driver?.capabilities.countTokens === undefined
            ? []
            : [servingDriver(driver, model, conversation, deadlines.now())]
        })[0]
        return admitRequest(keyLimits, input, undefined, () => {
          const unsent = noteUnsentFields(conversation, input.request, counting)
          if (unsent !== undefined) return Effect.fail(unsent)
          return counting === undefined
            ? Effect.succeed(undefined)
            : countUpstream(accounts, deadlines, { ...input, config: store.now() })
        })
      })
  })
})

/** The completions of the gateway. */
export const layerCompletion: Layer.Layer<
  Completion,
  never,
  Accounts | Captures | ConfigStore | Deadlines | KeyLimits
> = Layer.effect(Completion, makeCompletion)
