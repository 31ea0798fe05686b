/**
 * The reference upstream, a scripted provider of the session protocol, as a service: orders, its report, and ways to reach it.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as HttpServerError from "effect/http/HttpServerError"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { Report } from "./CallLog.ts"
import { type FaultOrder, Provider, type ReferenceOptions, type ReplyOrder } from "./Provider.ts"
import { makeClient } from "./provider/client.ts"
import { faultFits, usualCall } from "./provider/faults.ts"
import { makeServer } from "./socketServer.ts"

/** One reference upstream. Its sockets and clients share its accounts, sessions and report. */
export class Reference extends Context.Service<Reference, {
  /** Orders a fault for the next requests that match; dies if the fault cannot happen to the call. */
  readonly fail: (order: FaultOrder) => Effect.Effect<void>
  /** Orders a reply for the next completions, or continued streams, that match. */
  readonly reply: (order: ReplyOrder) => Effect.Effect<void>
  /** Ends the tokens of an account, or one token; without an argument all issued tokens. */
  readonly revoke: (accountOrToken?: string) => Effect.Effect<void>
  /** Suspends an account, or lifts its suspension. */
  readonly suspend: (account: string, suspended: boolean) => Effect.Effect<void>
  /**
   * Ends the running streams whose prompts contain `containing`, or all, where they are and without a status. A hanging reply
   * then continues in the stream that resumes it.
   */
  readonly cut: (containing?: string) => Effect.Effect<void>
  readonly report: Effect.Effect<Report>
  /** Waits until the report satisfies `predicate`, which is checked after every change. */
  readonly until: (predicate: (report: Report) => boolean) => Effect.Effect<Report>
  /** Drops all orders and resets the counts. */
  readonly forget: Effect.Effect<void>
  /** A client without a socket; requests to every host reach this upstream. */
  readonly client: HttpClient.HttpClient
  /** Listens on 127.0.0.1, or on `host`; port 0 takes any free port. Returns the base URL. */
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

/** Makes a reference upstream that uses the current `Clock`. */
export const make = (options: ReferenceOptions = {}): Effect.Effect<Reference["Service"]> =>
  Effect.map(Clock.Clock, (clock) => {
    const provider = new Provider(options, () => clock.currentTimeMillisUnsafe())
    return Reference.of({
      fail: (order) => {
        const call = order.call ?? usualCall(order.name)
        return faultFits(order.name, call)
          ? Effect.sync(() => provider.fail({ ...order, call }))
          : Effect.die(new Error(`${order.name} cannot happen to ${call}`))
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

/** A separate reference upstream. */
export const layer = (options?: ReferenceOptions): Layer.Layer<Reference> => Layer.effect(Reference, make(options))
