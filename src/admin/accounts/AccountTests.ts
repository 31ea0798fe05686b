/**
 * Tests of accounts, and deletion of their upstream sessions. A test takes no slot of the pool, so that it runs immediately even
 * when the pool is busy.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { type AccountAccess, Accounts } from "../../accounts/Accounts.ts"
import { assembleReply } from "../../completion/assembleReply.ts"
import { ConfigOrigin } from "../../config/ConfigOrigin.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { classify } from "../../domain/classifyUpstreamFailure.ts"
import { type Conversation, plainConversation, Text } from "../../domain/Conversation.ts"
import { estimateConversation } from "../../domain/estimateConversation.ts"
import { plainContext } from "../../domain/failureRules.ts"
import { changedError, type GatewayError, operatorMessage } from "../../domain/GatewayError.ts"
import type { Model } from "../../domain/models.ts"
import { foldReply, replyReasoning, replyText } from "../../domain/Reply.ts"
import type { ReplyEvent } from "../../domain/ReplyEvent.ts"
import { type Route, type RouteTable, type Target, targetName } from "../../domain/routes.ts"
import { monotonicMillis } from "../../domain/time.ts"
import { UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import { Captures } from "../../recordings/Captures.ts"
import { RequestBudget } from "../../upstream/budget.ts"
import type { AccountTestResult } from "./Api.ts"

/** The part of a test that does not depend on the account. */
interface TestModel {
  /** What the caller asked for; `undefined` if no upstream serves the default. */
  readonly model: Route | undefined
  /** The model as the caller named it. */
  readonly modelName: string
  /** Id of the request; captures of the test have it. */
  readonly requestId: string
}

interface AccountTest extends TestModel {
  readonly identifier: string
  /** The user's message of a completion; if empty, only the creation of a session is tested. */
  readonly message: string
}

/** The reply of a successful test. */
interface Outcome {
  readonly message: string
  readonly thinking: string
}

/** Accounts that `testAll` tests concurrently (spec "Limits"). */
const testsAtOnce = 5
/** Bounds the counted sessions of an account. */
const mostSessions = 5000
/** Time limit for clean-up and counting after a test. */
const cleanUpTime = "5 seconds"

const userTurn = (message: string): Conversation => ({
  ...plainConversation,
  turns: [{ role: "user", parts: [Text(message)] }]
})

/** What a test of an account asks for: the model that was named if its upstream has it, else the upstream's first. */
const targetIn = (table: RouteTable, upstream: string, asked: Route | undefined): Target | undefined => {
  const [first] = table.upstreams.get(upstream)?.values() ?? []
  return asked?.targets.find((target) => target.upstream === upstream) ?? first
}

export class AccountTests extends Context.Service<AccountTests, {
  /** Tests one account and records the status. Never fails: an error is the message of the result. */
  readonly test: (test: AccountTest) => Effect.Effect<typeof AccountTestResult.Type>
  /** Tests the login and session of all configured accounts, five at a time. */
  readonly testAll: (test: TestModel) => Effect.Effect<ReadonlyArray<typeof AccountTestResult.Type>>
  /**
   * Deletes all upstream sessions of an account. Succeeds with a note if the upstream keeps no sessions; fails with
   * `not_found`, or with the error of the upstream.
   */
  readonly deleteSessions: (identifier: string) => Effect.Effect<string | undefined, GatewayError>
}>()("model-gateway/admin/AccountTests") {
  static readonly make = Effect.gen(function*() {
    const accounts = yield* Accounts
    const captures = yield* Captures
    const config = yield* ConfigStore
    const { configWritable } = yield* ConfigOrigin

    /** Uses an account; tries once more with a fresh token if the upstream refuses the current one. */
    const using = <A>(
      access: AccountAccess,
      use: (access: AccountAccess) => Effect.Effect<A, UpstreamFailure>
    ): Effect.Effect<A, GatewayError> => {
      const attempt = (mayRefresh: boolean): Effect.Effect<A, GatewayError> =>
        Effect.catch(use(access), (failure) => {
          const { account: { isKeyless: keyless }, credential } = access
          const judged = classify(failure, { ...plainContext, mayRefresh, keyless, secrets: credential.secrets() })
          return Effect.andThen(
            access.report(judged.health, judged.retryAfter),
            judged.retry === "here_after_refresh"
              // Starts `use` after the refresh, so that it reads the fresh token.
              ? Effect.flatMap(credential.drop, () => attempt(false))
              : Effect.fail(changedError(judged.error, operatorMessage(judged.error), judged.error.retryAfter))
          )
        })
      return attempt(true)
    }

    /** Uses the account's token; a failure or timeout gives `None`. */
    const attemptWithToken = <A>(
      access: AccountAccess,
      use: (token: string | undefined) => Effect.Effect<A, UpstreamFailure>
    ) => Effect.option(Effect.timeout(Effect.flatMap(access.credential.token, use), cleanUpTime))

    const deleteSession = (access: AccountAccess, id: string) =>
      attemptWithToken(access, (token) => access.driver.capabilities.sessions?.delete(token, id) ?? Effect.void)

    const trySession = Effect.fnUntraced(function*(access: AccountAccess): Effect.fn.Return<Outcome, UpstreamFailure> {
      const { capabilities: { sessions }, name, verify } = access.driver
      const token = yield* access.credential.token
      if (sessions === undefined) {
        yield* verify(token)
        return { message: `The account works; the ${name} upstream keeps no sessions`, thinking: "" }
      }
      const id = yield* sessions.create(token)
      yield* deleteSession(access, id)
      return { message: "The login works and a session was made", thinking: "" }
    })

    const tryCompletion = Effect.fnUntraced(function*(
      access: AccountAccess,
      model: Model,
      { message, requestId }: AccountTest
    ): Effect.fn.Return<Outcome, UpstreamFailure> {
      const conversation = userTurn(message)
      const { compat, limits, request_timeouts } = config.now()
      const budget = new RequestBudget(limits, yield* Clock.Clock)
      const machine = assembleReply({
        sieve: undefined,
        reasoningCalls: undefined,
        stripMarkers: model.search && compat.strip_reference_markers,
        stop: undefined,
        singleCall: false,
        showReasoning: model.reasoning !== false,
        addCall: () => budget.addCall(),
        callId: (index) => `call_${index}`,
        promptTokens: () => estimateConversation(conversation),
        meter: undefined,
        keepSealed: undefined,
        keepSeal: undefined
      })
      const fold = foldReply()
      const events: Array<ReplyEvent> = []
      const drain = () => {
        for (const event of events) fold.push(event)
        events.length = 0
      }
      let sessionId: string | undefined
      yield* access.driver.complete({
        model,
        conversation,
        credential: access.credential,
        direct: false,
        callerHeaders: undefined,
        client: undefined,
        onChanged: undefined,
        cacheName: undefined,
        hasSession: false,
        leastCached: undefined,
        recorder: captures.recorder(
          { identifier: access.account.identifier, upstream: access.upstream },
          requestId,
          undefined
        ),
        isWhole: false,
        budget,
        onSession: undefined,
        onContinue: undefined
      }).pipe(
        Effect.flatMap((started) => {
          sessionId = started.sessionId
          return Stream.runForEachArray(started.events, (arrived) => {
            for (const event of arrived) machine.push(event, events)
            drain()
            return Effect.void
          })
        }),
        Effect.scoped,
        Effect.timeoutOrElse({
          duration: request_timeouts.attempts * 1000,
          orElse: () => Effect.fail(new UpstreamFailure({ phase: "completion", kind: "timeout" }))
        }),
        Effect.ensuring(Effect.suspend(() => sessionId === undefined ? Effect.void : deleteSession(access, sessionId)))
      )
      machine.end(events)
      drain()
      const reply = fold.reply()
      const outcome: Outcome = { message: replyText(reply), thinking: replyReasoning(reply) }
      if (outcome.message !== "" || outcome.thinking !== "") return outcome
      return yield* new UpstreamFailure({
        phase: "stream",
        kind: reply.finish === "content_filter" ? "withdrawn" : "empty"
      })
    })

    const countSessions = (access: AccountAccess) =>
      Effect.map(
        attemptWithToken(access, (token) =>
          access.driver.capabilities.sessions?.list(token, mostSessions) ?? Effect.succeed([])),
        (sessions) =>
          sessions._tag === "Some" ? sessions.value.length : 0
      )

    const test = Effect.fn("AccountTests.test")(function*(test: AccountTest) {
      const { identifier, message, modelName } = test
      const known = yield* Effect.result(accounts.access(identifier))
      const clock = yield* Clock.Clock
      const began = monotonicMillis(clock)
      const target = Result.isFailure(known)
        ? undefined
        : targetIn(config.now().route_table, known.success.upstream, test.model)
      const outcome = Result.isFailure(known)
        ? Result.fail(known.failure)
        : yield* Effect.result(using(
          known.success,
          (access) =>
            message.trim() === "" || target === undefined
              ? trySession(access)
              : tryCompletion(access, target.model, test)
        ))
      const response_time = Math.round(monotonicMillis(clock) - began)
      const { message: said } = Result.isSuccess(outcome) ? outcome.success : outcome.failure
      yield* accounts.setTestStatus(identifier, Result.isSuccess(outcome) ? "ok" : "failed", said)
      const thinking = Result.isSuccess(outcome) ? outcome.success.thinking : ""
      return {
        account: identifier,
        success: Result.isSuccess(outcome),
        response_time,
        message: said,
        model: target === undefined || test.model?.targets.includes(target) === true ? modelName : targetName(target),
        session_count: Result.isSuccess(outcome) && Result.isSuccess(known) ? yield* countSessions(known.success) : 0,
        config_writable: yield* configWritable,
        ...(thinking === "" ? {} : { thinking })
      }
    })

    return AccountTests.of({
      test,
      testAll: Effect.fn("AccountTests.testAll")(function*(model) {
        const { accounts: configured } = yield* config.current
        return yield* Effect.forEach(
          configured,
          ({ name }) => test({ ...model, identifier: name, message: "" }),
          { concurrency: testsAtOnce }
        )
      }),
      deleteSessions: Effect.fn("AccountTests.deleteSessions")(function*(identifier) {
        const access = yield* accounts.access(identifier)
        const { capabilities: { sessions }, name } = access.driver
        if (sessions === undefined) return `The ${name} upstream keeps no sessions: there was nothing to delete`
        yield* using(access, ({ credential }) => Effect.flatMap(credential.token, sessions.deleteAll))
        return undefined
      })
    })
  })

  static readonly layer: Layer.Layer<AccountTests, never, Accounts | Captures | ConfigOrigin | ConfigStore> = Layer
    .effect(
      AccountTests,
      AccountTests.make
    )
}
