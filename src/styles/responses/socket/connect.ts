/**
 * Opens WebSocket connections of the Responses style: each message is a request of this router.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Scope from "effect/Scope"
import { CloseEvent } from "effect/socket/Socket"
import * as Tracer from "effect/Tracer"
import { IncomingMessage } from "node:http"
import { Deadlines } from "../../../config/clock/Deadlines.ts"
import { CurrentBufferedBytes, CurrentLimits } from "../../../config/limits.ts"
import { type GatewayError, gatewayError, invalidRequest } from "../../../domain/GatewayError.ts"
import { Draining } from "../../../http/Draining.ts"
import { toGatewayError } from "../../../http/endpointMiddleware.ts"
import { messageHeaders, messageRequest } from "../../../http/MessageSource.ts"
import { CurrentCaller, CurrentRequest } from "../../../http/RequestContext.ts"
import { CurrentServing } from "../../../http/Serving.ts"
import { Connection } from "./Connection.ts"
import { Connections } from "./Connections.ts"
import type { Turn } from "./Turn.ts"

const upgradeRequired = (message: string, cause?: GatewayError["cause"]) =>
  gatewayError("upgrade_required", message, { cause })

const tooMany = gatewayError(
  "rate_limit_exceeded",
  "This API key, or this address without one, already has as many WebSocket connections as it may have. Close one, and retry.",
  { retryAfter: 10, cause: { setting: "limits.key_websockets" } }
)

/** The fault of a request that opens no WebSocket (RFC 6455, 4.2.1). */
const handshakeFault = ({ headers }: HttpServerRequest.HttpServerRequest): GatewayError | undefined => {
  if (headers["upgrade"]?.toLowerCase() !== "websocket") {
    return upgradeRequired("GET opens a WebSocket here; send POST, or Upgrade: websocket")
  }
  if (headers["sec-websocket-version"] !== "13") {
    return upgradeRequired("sec-websocket-version: the gateway speaks version 13")
  }
  return /^[+/0-9A-Za-z]{22}==$/.test(headers["sec-websocket-key"] ?? "")
    ? undefined
    : invalidRequest("sec-websocket-key: must be 16 bytes as Base64")
}

/** Makes the handler that opens a connection and serves it until it is closed. */
export const makeConnect = Effect.gen(function*() {
  const router = yield* HttpRouter.HttpRouter
  const limits = yield* CurrentLimits
  const { socketAddress } = yield* CurrentServing
  const deadlines = yield* Deadlines
  const draining = yield* Draining
  const connections = new Connections(yield* Effect.context<never>())
  yield* Effect.forkScoped(Effect.flatMap(draining, (refusal) => Effect.sync(() => connections.leave(refusal))))
  let app: ReturnType<typeof router.asHttpEffect> | undefined

  return Effect.fnUntraced(function*(request: HttpServerRequest.HttpServerRequest) {
    const address = socketAddress(request)
    if (address === undefined) {
      return yield* upgradeRequired("WebSockets are not enabled on this gateway; send POST", {
        setting: "server.websockets"
      })
    }
    const fault = handshakeFault(request)
    if (fault !== undefined) return yield* fault
    if (connections.refusal !== undefined) return yield* connections.refusal
    const { source } = request
    const caller = yield* CurrentCaller
    const { id } = yield* CurrentRequest
    const upgraded = yield* Effect.mapError(
      request.upgrade,
      () => upgradeRequired("The server of this gateway opens no WebSocket; send POST")
    )
    if (!(source instanceof IncomingMessage)) return yield* upgradeRequired("This server opens no WebSocket; send POST")
    // A client may make up any number of direct tokens, so its address counts in their place.
    const owner = caller._tag === "Direct" ? `direct ${address}` : caller.owner
    yield* Effect.acquireRelease(
      Effect.suspend(() => connections.enter(owner, limits().key_websockets) ? Effect.void : Effect.fail(tooMany)),
      () => Effect.sync(() => connections.exit(owner))
    )
    const outer = yield* Effect.context<never>()
    const base = Context.omit(CurrentCaller, CurrentRequest, Scope.Scope, Tracer.ParentSpan)(outer)
    const headers = messageHeaders(request.headers)
    // The routes are complete only after all layers are built.
    const handle = app ??= router.asHttpEffect()

    // The client has left where the handshake or the connection fails.
    const serve = Effect.gen(function*() {
      const reader = yield* upgraded.reader
      const writer = yield* upgraded.writer
      const fork = Effect.runForkWith(base)
      const connection = new Connection({
        socket: source.socket,
        id,
        share: caller._tag === "Direct" ? "direct" : caller.owner,
        limits,
        sum: yield* CurrentBufferedBytes,
        deadlines,
        connections,
        run: (turn) => {
          const scope = Scope.makeUnsafe()
          const context = base.pipe(
            Context.add(HttpServerRequest.HttpServerRequest, messageRequest(turn, headers, request)),
            Context.add(Scope.Scope, scope)
          )
          return Effect.runForkWith(context)(requestOf(handle, connection, turn, scope))
        },
        close: (code, reason) => {
          fork(Effect.ignore(writer.write(new CloseEvent(code, reason))))
        }
      })
      yield* Effect.addFinalizer(() => connection.release)
      const receive: Effect.Effect<never, unknown> = Effect.flatMap(
        reader.pull,
        (messages) => Effect.flatMap(Effect.forEach(messages, (each) => connection.receive(each)), () => receive)
      )
      return yield* receive
    })
    return yield* Effect.catch(serve, () => Effect.succeed(HttpServerResponse.empty({ status: 101 })))
  })
})

/** The request of a turn, from its message to its last event. Only its route can be interrupted, as behind a socket of HTTP. */
const requestOf = (
  handle: ReturnType<HttpRouter.HttpRouter["asHttpEffect"]>,
  connection: Connection,
  turn: Turn,
  scope: Scope.Closeable
) =>
  Effect.uninterruptible(
    Effect.onExit(
      Effect.matchCauseEffect(handle, {
        onSuccess: (response) => Effect.interruptible(connection.deliver(turn, response, scope)),
        onFailure: (cause) =>
          Effect.flatMap(toGatewayError(cause), (error) =>
            error === undefined ? Effect.interrupt : Effect.sync(() => connection.refuse(error, turn.lane)))
      }),
      (exit) =>
        Scope.close(scope, exit)
    )
  )
