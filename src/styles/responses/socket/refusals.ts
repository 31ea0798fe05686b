/** Why a connection takes no message, or no other one. */
import { type GatewayError, gatewayError } from "../../../domain/GatewayError.ts"
import { mostLanes, mostWaiting } from "./lanes.ts"

/** The error for a message that finds no lane, or no place in one. */
export const notTaken = (code: "websocket_stream_limit_reached" | "rate_limit_exceeded"): GatewayError =>
  code === "rate_limit_exceeded"
    ? gatewayError(code, `More than ${mostWaiting} responses of this connection wait for their turn`, { retryAfter: 1 })
    : gatewayError(code, `stream_id: a connection has at most ${mostLanes} named lanes`, { param: "stream_id" })

export const tooOld = (seconds: number): GatewayError =>
  gatewayError(
    "websocket_connection_limit_reached",
    `The connection is older than ${seconds} seconds; open another one`,
    { cause: { setting: "limits.websocket_seconds" } }
  )

export const tooMuchKept = gatewayError(
  "websocket_connection_limit_reached",
  "The gateway is busy: its WebSocket connections keep too much. Open another one and send the whole conversation.",
  { cause: { setting: "limits.websocket_bytes" } }
)
