/**
 * The reference upstream on a real socket, the driver against it, and what tests ask of both.
 */
import { Cause, Clock, Effect, Exit, Layer, Stream } from "effect"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { AddressInfo, Socket } from "node:net"
import { ConfigStore } from "../../../src/config/ConfigStore.ts"
import { classify, type FailureClass } from "../../../src/domain/classifyUpstreamFailure.ts"
import { type Conversation, Text } from "../../../src/domain/Conversation.ts"
import { defaultLimits, type Limits } from "../../../src/domain/limits.ts"
import type { MonotonicSource } from "../../../src/domain/monotonicMillis.ts"
import type { UpstreamEvent } from "../../../src/domain/UpstreamEvent.ts"
import { UpstreamFailure } from "../../../src/domain/UpstreamFailure.ts"
import { Budget } from "../../../src/upstream/budget.ts"
import { Exchanges } from "../../../src/upstream/Exchange.ts"
import { layerUndici } from "../../../src/upstream/exchanges/undici.ts"
import type { ReferenceOptions } from "../../../src/upstream/reference/Options.ts"
import { Provider } from "../../../src/upstream/reference/Provider.ts"
import { makeSessionDriver } from "../../../src/upstream/session/driver.ts"
import type { CompletionRequest, Credential, Driver, UpstreamModel } from "../../../src/upstream/Upstream.ts"

export interface ReferenceServer {
  readonly provider: Provider
  readonly url: string
  /** Sockets that were ever opened to it. */
  readonly accepted: () => number
  /** Resolves once the condition holds; it is asked after each change of the report. */
  readonly until: (condition: () => boolean) => Effect.Effect<void>
}

/** Plays a call's steps on a response. */
const play = async (provider: Provider, request: IncomingMessage, response: ServerResponse): Promise<void> => {
  const pieces: Array<Buffer> = []
  for await (const piece of request) pieces.push(piece as Buffer)
  const { pathname, search } = new URL(request.url ?? "/", "http://reference")
  const call = provider.handle({
    method: request.method ?? "GET",
    path: pathname,
    query: search,
    authorization: request.headers.authorization,
    body: Buffer.concat(pieces).toString()
  })
  call.onStop = () => response.end()
  response.on("close", () => call.end(response.writableFinished ? "finished" : "aborted"))
  for (const step of call.steps) {
    if (call.outcome !== "open") return
    switch (step._tag) {
      case "Head":
        response.writeHead(step.status, step.headers)
        response.flushHeaders()
        break
      case "Chunk":
        response.write(step.bytes)
        call.onProgress(step.sent)
        break
      case "Wait":
        await new Promise(setImmediate)
        break
      case "Hang":
        return
      case "Reset":
        // What was written has to leave first.
        await new Promise((resolve) => setImmediate(resolve))
        call.end("broken")
        response.socket?.resetAndDestroy()
        return
    }
  }
  response.end()
}

/** Starts a reference upstream on a free port; the scope ends it. */
export const referenceServer = (options: ReferenceOptions = {}) =>
  Effect.acquireRelease(
    Effect.callback<ReferenceServer & { readonly server: Server }>((resume) => {
      const provider = new Provider(options, Date.now)
      let accepted = 0
      const sockets = new Set<Socket>()
      const listeners = new Set<() => void>()
      const changed = () => listeners.forEach((listener) => listener())
      provider.onChange(changed)
      const server = createServer((request, response) => void play(provider, request, response))
      server.on("connection", (socket) => {
        accepted++
        sockets.add(socket)
        socket.on("error", () => {})
        socket.on("close", () => sockets.delete(socket))
      })
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
                listeners.delete(check)
                done(Effect.void)
              }
              listeners.add(check)
              check()
              return Effect.sync(() => listeners.delete(check))
            })
        })))
    }),
    ({ server }) =>
      Effect.callback<void>((resume) => {
        server.close(() => resume(Effect.void))
        server.closeAllConnections()
      })
  )

/** Far more than anything here takes, and little enough for what hangs. */
export const patient = { firstByte: 10_000, silence: 10_000 }
export const impatient = { firstByte: 250, silence: 250 }

/** The driver on the production client. */
export const driverFor = (baseUrl: string, limits = patient) =>
  Effect.map(Exchanges, (exchanges) => makeSessionDriver(exchanges, { baseUrl, furtherModels: [], limits }))

export const clientLayer: Layer.Layer<Exchanges> = Layer.orDie(Layer.provide(layerUndici, ConfigStore.layerJson()))

export const reasoner: UpstreamModel = { id: "upstream-reasoner", reasoning: true, search: false }

export const fixedToken = (token: string | undefined): Credential => ({
  token: Effect.succeed(token),
  renew: () => Effect.fail(new UpstreamFailure({ phase: "login", kind: "refused", code: 40003 }))
})

export const ask = (prompt: string): Conversation => ({
  turns: [{ role: "user", parts: [Text(prompt)] }],
  tools: [],
  toolChoice: { _tag: "Auto" },
  parallelToolCalls: true,
  stop: [],
  sampling: {},
  output: undefined
})

export const request = (prompt: string, rest: Partial<CompletionRequest> = {}): CompletionRequest => ({
  model: reasoner,
  conversation: ask(prompt),
  credential: fixedToken("token"),
  recorder: undefined,
  budget: freshBudget(),
  ...rest
})

/** A budget of the default limits by the running clock; tests with a clock of their own give it. */
export const freshBudget = (limits: Partial<Limits> = {}, clock?: MonotonicSource): Budget =>
  new Budget({ ...defaultLimits, ...limits }, clock ?? Effect.runSync(Clock.Clock))

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

export const facts = (failure: UpstreamFailure) => classify(failure, { direct: false, mayRefresh: true, shown: false })

/** Runs a completion to its end. */
export const complete = (driver: Driver, input: CompletionRequest): Effect.Effect<Outcome> =>
  Effect.gen(function*() {
    const events: Array<UpstreamEvent> = []
    const exit = yield* driver.complete(input).pipe(
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
