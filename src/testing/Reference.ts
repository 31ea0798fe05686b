/**
 * The reference upstream as a service: what it is told to do, what it has seen, and the ways to reach it.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as HttpServerError from "effect/http/HttpServerError"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { faultFits, usualCall } from "./faults.ts"
import { makeClient } from "./inProcess.ts"
import type { Report } from "./Ledger.ts"
import type { ReferenceOptions } from "./Options.ts"
import type { FaultOrder, ReplyOrder } from "./Orders.ts"
import { Provider } from "./Provider.ts"
import { makeServer } from "./socketServer.ts"

/** Holds one reference upstream; sockets and clients made from it share its accounts, sessions and report. */
export class Reference extends Context.Service<Reference, {
  /** Orders a fault for the next requests that fit; dies where the fault has no meaning for the call. */
  readonly fail: (order: FaultOrder) => Effect.Effect<void>
  /** Orders a reply for the next completions (or continued streams) that fit. */
  readonly reply: (order: ReplyOrder) => Effect.Effect<void>
  /** Ends the tokens of an account, or one token; all that were given out without an argument. */
  readonly revoke: (accountOrToken?: string) => Effect.Effect<void>
  /** Suspends an account, or lifts its suspension. */
  readonly suspend: (account: string, suspended: boolean) => Effect.Effect<void>
  /**
   * Ends the streams that run where they are, without a status, as if they were cut off: those whose prompts hold `containing`,
   * or all. A reply that was ordered to hang goes on then, in the stream that resumes it.
   */
  readonly cut: (containing?: string) => Effect.Effect<void>
  readonly report: Effect.Effect<Report>
  /** Waits until the report satisfies `predicate`; looks after every change, never by the clock. */
  readonly until: (predicate: (report: Report) => boolean) => Effect.Effect<Report>
  /** Drops all orders and forgets what was counted. */
  readonly forget: Effect.Effect<void>
  /** A client without a socket: whatever the host, it reaches this upstream. */
  readonly client: HttpClient.HttpClient
  /** Listens on a socket of 127.0.0.1, or of `host`; 0 takes any free port. Gives the base URL. */
  readonly listen: (options?: {
    readonly port?: number | undefined
    readonly host?: string | undefined
  }) => Effect.Effect<string, HttpServerError.ServeError, Scope.Scope>
}>()("model-gateway/upstream/Reference") {}

const until = (provider: Provider, predicate: (report: Report) => boolean): Effect.Effect<Report> =>
  Effect.callback((resume) => {
    const look = () => {
      const report = provider.report()
      if (!predicate(report)) return
      stop()
      resume(Effect.succeed(report))
    }
    const stop = provider.onChange(look)
    look()
    return Effect.sync(stop)
  })

const listen = (provider: Provider, keepAlive: number | undefined, port: number, host: string) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly url: string; readonly close: Effect.Effect<void> }, HttpServerError.ServeError>(
      (resume) => {
        const server = makeServer(provider, keepAlive)
        server.once("error", (cause) => resume(Effect.fail(new HttpServerError.ServeError({ cause }))))
        server.listen(port, host, () => {
          const address = server.address()
          const actual = typeof address === "object" && address !== null ? address.port : port
          const close = Effect.callback<void>((resume) => {
            server.close(() => resume(Effect.void))
            server.closeAllConnections()
          })
          resume(Effect.succeed({ url: `http://${host}:${actual}`, close }))
        })
      }
    ),
    ({ close }) => close
  )

/** Makes a reference upstream; its time is the `Clock` of the moment. */
export const make = (options: ReferenceOptions = {}): Effect.Effect<Reference["Service"]> =>
  Effect.map(Clock.Clock, (clock) => {
    const provider = new Provider(options, () => clock.currentTimeMillisUnsafe())
    return Reference.of({
      fail: (order) => {
        const call = order.call ?? usualCall(order.name)
        return faultFits(order.name, call)
          ? Effect.sync(() => provider.fail({ ...order, call }))
          : Effect.die(new Error(`${order.name} is no fault of ${call}`))
      },
      reply: (order) => Effect.sync(() => provider.reply(order)),
      revoke: (accountOrToken) => Effect.sync(() => provider.revoke(accountOrToken)),
      suspend: (account, suspended) => Effect.sync(() => provider.suspend(account, suspended)),
      cut: (containing = "") => Effect.sync(() => provider.cut(containing)),
      report: Effect.sync(() => provider.report()),
      until: (predicate) => until(provider, predicate),
      forget: Effect.sync(() => provider.forget()),
      client: makeClient(provider),
      listen: ({ host = "127.0.0.1", port = 0 } = {}) =>
        Effect.map(listen(provider, options.keepAlive, port, host), ({ url }) => url)
    })
  })

/** A reference upstream of its own. */
export const layer = (options?: ReferenceOptions): Layer.Layer<Reference> => Layer.effect(Reference, make(options))
