/**
 * The reference upstream on a real socket, the driver against it, and what tests ask of both.
 */
import { it } from "@effect/vitest"
import { Cause, Clock, Effect, Exit, Fiber, Layer, type Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import type { Server } from "node:http"
import type { AddressInfo } from "node:net"
import { Deadlines } from "../../../src/config/clock/Deadlines.ts"
import { CurrentPace } from "../../../src/config/clock/retry.ts"
import { ConfigStore } from "../../../src/config/ConfigStore.ts"
import { classify } from "../../../src/domain/classifyUpstreamFailure.ts"
import { type Conversation, plainConversation, Text } from "../../../src/domain/Conversation.ts"
import type { FailureClass } from "../../../src/domain/FailureClass.ts"
import { plainContext } from "../../../src/domain/failureRules.ts"
import { defaultLimits } from "../../../src/domain/limits.ts"
import type { UpstreamEvent } from "../../../src/domain/UpstreamEvent.ts"
import { UpstreamFailure } from "../../../src/domain/UpstreamFailure.ts"
import type { UpstreamModel } from "../../../src/domain/UpstreamModel.ts"
import { Provider, type ReferenceOptions } from "../../../src/testing/Provider.ts"
import { makeServer } from "../../../src/testing/socketServer.ts"
import { RequestBudget } from "../../../src/upstream/budget.ts"
import { Exchanges } from "../../../src/upstream/Exchange.ts"
import { makeSessionDriver } from "../../../src/upstream/session/driver.ts"
import { layerUndici } from "../../../src/upstream/transports/undici.ts"
import type { CompletionRequest, Credential, Driver, Recorder } from "../../../src/upstream/Upstream.ts"

export interface ReferenceServer {
  readonly provider: Provider
  readonly url: string
  /** Sockets that were ever opened to it. */
  readonly accepted: () => number
  /** Resolves once the condition holds; it is asked after each change of the report. */
  readonly until: (condition: () => boolean) => Effect.Effect<void>
}

/** Starts a reference upstream on a free port; the scope ends it. */
export const referenceServer = (options: ReferenceOptions = {}) =>
  Effect.acquireRelease(
    Effect.callback<ReferenceServer & { readonly server: Server }>((resume) => {
      const provider = new Provider(options, Date.now)
      let accepted = 0
      const server = makeServer(provider)
      server.on("connection", () => accepted++)
      server.listen(0, "127.0.0.1", () =>
        resume(Effect.succeed({
          server,
          provider,
          url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
          accepted: () => accepted,
          until: (condition) =>
            Effect.callback((done) => {
              const check = () => {
                if (!condition()) return
                stop()
                done(Effect.void)
              }
              const stop = provider.onChange(check)
              check()
              return Effect.sync(stop)
            })
        })))
    }),
    ({ server }) =>
      Effect.callback<void>((resume) => {
        server.close(() => resume(Effect.void))
        server.closeAllConnections()
      })
  )

/** Limits in milliseconds; the time of tests stands still unless they move it. */
export const timeLimits = { firstByte: 10_000, silence: 10_000 }

/** The driver on the production client. */
export const driverFor = (baseUrl: string) =>
  Effect.map(Exchanges, (exchanges) => makeSessionDriver(exchanges, { baseUrl, furtherModels: [], limits: timeLimits }))

const clientLayer: Layer.Layer<Exchanges> = Layer.orDie(
  Layer.provide(layerUndici, [Deadlines.layer, ConfigStore.layerJson()])
)

/** A test with the production client, whose every time limit goes by the test's own clock; resumes follow without a pause. */
export const itOnClient = <E>(name: string, test: () => Effect.Effect<void, E, Exchanges | Scope.Scope>) =>
  it.live(name, () =>
    test().pipe(
      Effect.provide(clientLayer),
      Effect.provideService(CurrentPace, 0),
      // What these tests wait for is a socket, which may take a while on a busy machine: no sign of a clock that was forgotten.
      Effect.provide(TestClock.layer({ warningDelay: "1 hour" }))
    ))

/** Sees the reply of a completion as the driver does. */
export interface Watch {
  readonly recorder: Recorder
  /** Waits until the head of a reply was read. */
  readonly head: Effect.Effect<void>
  /** Waits until the replies' bytes hold this text. */
  readonly bytes: (text: string) => Effect.Effect<void>
}

export const makeWatch = (): Watch => {
  let isOpen = false
  let text = ""
  const looks = new Set<() => void>()
  const look = () => looks.forEach((each) => each())
  const until = (holds: () => boolean): Effect.Effect<void> =>
    Effect.callback((done) => {
      const check = () => {
        if (!holds()) return
        looks.delete(check)
        done(Effect.void)
      }
      looks.add(check)
      check()
    })
  return {
    recorder: {
      round: () => ({
        opened: () => {
          isOpen = true
          look()
        },
        bytes: (chunk) => {
          text += Buffer.from(chunk).toString("latin1")
          look()
        },
        closed: () => {}
      })
    },
    head: until(() => isOpen),
    bytes: (part) => until(() => text.includes(part))
  }
}

/**
 * What an effect comes to that waits for an upstream which says no more, and the milliseconds that it took. Time passes once the
 * upstream is `silent`: before that there is no hurry.
 */
export const whileTimePasses = <A, E, R>(effect: Effect.Effect<A, E, R>, silent: Effect.Effect<void>, step = 1_000) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(effect)
    yield* silent
    const from = yield* Clock.currentTimeMillis
    while (fiber.pollUnsafe() === undefined) yield* TestClock.adjust(step)
    return { result: yield* Fiber.join(fiber), millis: (yield* Clock.currentTimeMillis) - from }
  })

export const reasoner: UpstreamModel = { id: "upstream-reasoner", reasoning: true, search: false }

export const fixedToken = (token: string | undefined): Credential => ({
  token: Effect.succeed(token),
  renew: () => Effect.fail(new UpstreamFailure({ phase: "login", kind: "refused", refusal: "token" }))
})

export const ask = (prompt: string): Conversation => ({
  ...plainConversation,
  turns: [{ role: "user", parts: [Text(prompt)] }]
})

/** A request; without a budget it is given one of the default limits when it runs. */
export type Request = Omit<CompletionRequest, "budget"> & Partial<Pick<CompletionRequest, "budget">>

export const request = (prompt: string, rest: Partial<CompletionRequest> = {}): Request => ({
  model: reasoner,
  conversation: ask(prompt),
  credential: fixedToken("token"),
  direct: false,
  callerHeaders: undefined,
  client: undefined,
  onChanged: undefined,
  cacheName: undefined,
  hasSession: false,
  leastCached: undefined,
  recorder: undefined,
  isWhole: false,
  onSession: undefined,
  onContinue: undefined,
  ...rest
})

/** Starts a completion. */
export const start = (driver: Driver, input: Request) =>
  Effect.flatMap(Clock.Clock, (clock) => driver.complete({ budget: new RequestBudget(defaultLimits, clock), ...input }))

/** What a completion came to. */
export interface Outcome {
  readonly reasoning: string
  readonly text: string
  readonly completionTokens: number | undefined
  readonly finish: string | undefined
  /** The class of the failure it ended with. */
  readonly failed: FailureClass | undefined
  readonly failure: UpstreamFailure | undefined
}

export const facts = (failure: UpstreamFailure) => classify(failure, { ...plainContext, mayRefresh: true })

/** Runs a completion to its end. */
export const complete = (driver: Driver, input: Request): Effect.Effect<Outcome> =>
  Effect.gen(function*() {
    const events: Array<UpstreamEvent> = []
    const exit = yield* start(driver, input).pipe(
      Effect.flatMap((reply) => Stream.runForEach(reply.events, (event) => Effect.sync(() => events.push(event)))),
      Effect.scoped,
      Effect.exit
    )
    const joined = (tag: "UpstreamReasoning" | "UpstreamText") =>
      events.map((event) => event._tag === tag ? event.text : "").join("")
    const outcome: Outcome = {
      reasoning: joined("UpstreamReasoning"),
      text: joined("UpstreamText"),
      completionTokens: events.findLast((event) => event._tag === "UpstreamUsage")?.usage.completionTokens,
      finish: events.findLast((event) => event._tag === "UpstreamFinish")?.reason,
      failed: undefined,
      failure: undefined
    }
    if (Exit.isSuccess(exit)) return outcome
    const failure = Cause.squash(exit.cause)
    if (!(failure instanceof UpstreamFailure)) return yield* Effect.die(failure)
    return { ...outcome, failed: facts(failure).class, failure }
  })
