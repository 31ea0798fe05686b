/**
 * Imported first by the upstreams of the benchmarks: counts the bytes of their connections in both directions, and the events of their
 * replies. A reply that is no stream of events counts as one event. Any message from the parent asks for the counts.
 */
import { subscribe } from "node:diagnostics_channel"
import { ServerResponse } from "node:http"
import type { Socket } from "node:net"

export interface Counts {
  readonly bytes: number
  readonly events: number
}

const open = new Set<Socket>()
let closedBytes = 0
let events = 0

const bytesOf = ({ bytesRead, bytesWritten }: Socket): number => bytesRead + bytesWritten

subscribe("net.server.socket", (message) => {
  const { socket } = message as { readonly socket: Socket }
  open.add(socket)
  socket.once("close", () => {
    open.delete(socket)
    closedBytes += bytesOf(socket)
  })
})

const streams = new WeakSet<ServerResponse>()

/** The events in a piece of a reply. The upstreams write whole events. */
const count = (response: ServerResponse, piece: unknown): void => {
  if (typeof piece !== "string" && !(piece instanceof Uint8Array)) return
  const found = Buffer.from(piece).toString("latin1").split("\n\n").length - 1
  if (found > 0) streams.add(response)
  events += found
}

const { end, write } = ServerResponse.prototype
ServerResponse.prototype.write = function(this: ServerResponse, ...args: Array<unknown>) {
  count(this, args[0])
  return Reflect.apply(write, this, args)
}
ServerResponse.prototype.end = function(this: ServerResponse, ...args: Array<unknown>) {
  count(this, args[0])
  if (!streams.has(this)) events++
  return Reflect.apply(end, this, args)
}

process.on("message", () => {
  let bytes = closedBytes
  for (const socket of open) bytes += bytesOf(socket)
  process.send?.({ bytes, events } satisfies Counts)
})
