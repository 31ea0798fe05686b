/**
 * WebSocket connections of the Responses API: the memory of idle ones, and the bytes that a client sends in a tool loop, against HTTP.
 */
import { WebSocket } from "@effect/platform-node/NodeWS"
import { once } from "node:events"
import { Agent, request } from "node:http"
import type { Socket } from "node:net"
import { pause } from "./soak/until.ts"
import { table } from "./table.ts"
import { effort, residentMb, type Target, withTargets } from "./targets.ts"

const headers = { authorization: "Bearer bench-key" }

const open = async (target: Target): Promise<WebSocket> => {
  const socket = new WebSocket(`${target.url.replace("http", "ws")}/v1/responses`, {
    headers,
    perMessageDeflate: false
  })
  await once(socket, "open")
  return socket
}

const opened = async (target: Target, count: number): Promise<ReadonlyArray<WebSocket>> => {
  const sockets: Array<WebSocket> = []
  const atOnce = 100
  while (sockets.length < count) {
    const next = Math.min(atOnce, count - sockets.length)
    sockets.push(...await Promise.all(Array.from({ length: next }, () => open(target))))
  }
  return sockets
}

const closeAll = async (sockets: ReadonlyArray<WebSocket>): Promise<void> => {
  await Promise.all(sockets.map((socket) => {
    const closed = once(socket, "close")
    socket.close()
    return closed
  }))
}

/** Bytes of resident memory of each idle connection of a gateway that has had connections before. */
const idleBytes = async (target: Target, count: number): Promise<number> => {
  await closeAll(await opened(target, count / 4))
  await pause(2000)
  const before = residentMb(target.pid)
  const sockets = await opened(target, count)
  await pause(2000)
  const after = residentMb(target.pid)
  await closeAll(sockets)
  return (after - before) * 1024 * 1024 / count
}

/** As large as those of an agent: 17 kB of instructions, and 19 kB of tools, which both transports send with each turn. */
const instructions = { type: "message", role: "developer", content: "Look for the plover. ".repeat(800) }
const tools = Array.from({ length: 10 }, (_, i) => ({
  type: "function",
  name: i === 0 ? "look" : `tool_${i}`,
  description: "Says what is there. ".repeat(85),
  parameters: { type: "object", properties: { at: { type: "string" } } }
}))
const task = { type: "message", role: "user", content: `!call look {"at":"the plover"}` }
const result = "The plover stands on the beach. ".repeat(32)
const fields = { model: "upstream-chat", tools, store: false, stream: true }

interface Final {
  readonly type: string
  readonly response: { readonly id: string; readonly output: ReadonlyArray<{ readonly call_id: string }> }
}

/** Sends a turn by all items of the conversation, or by those that the server does not have. */
type Send = (items: ReadonlyArray<object>, fresh: ReadonlyArray<object>) => Promise<Final>

/** A loop of so many turns, each with a call. */
const loop = async (send: Send, turns: number): Promise<void> => {
  const items: Array<object> = [instructions, task]
  let fresh: ReadonlyArray<object> = [...items]
  for (let turn = 0; turn < turns; turn++) {
    const { response, type } = await send(items, fresh)
    if (type !== "response.completed") throw new Error(`The turn ended with ${type}`)
    const { output } = response
    fresh = output.map(({ call_id }) => ({ type: "function_call_output", call_id, output: result }))
    items.push(...output, ...fresh)
  }
}

const finalOf = (data: string): Final | undefined => {
  const event = JSON.parse(data) as Final
  return /^(?:response\.(?:completed|failed|incomplete)|error)$/.test(event.type) ? event : undefined
}

/** Bytes that a client sends over HTTP, heads included. */
const bytesOverHttp = async (target: Target, turns: number): Promise<number> => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  let socket: Socket | undefined
  await loop((input) =>
    new Promise((resolve, reject) => {
      const outgoing = request(`${target.url}/v1/responses`, {
        method: "POST",
        agent,
        headers: { ...headers, "content-type": "application/json" }
      }, (response) => {
        let text = ""
        response.on("data", (chunk: Buffer) => text += chunk.toString())
        response.on("end", () => {
          const data = [...text.matchAll(/^data: (\{.*)$/gm)].map(([, each = ""]) => each)
          resolve(finalOf(data.at(-1) ?? "{}") ?? { type: text, response: { id: "", output: [] } })
        })
      })
      outgoing.on("socket", (used) => socket = used).on("error", reject).end(JSON.stringify({ ...fields, input }))
    }), turns)
  const bytes = socket!.bytesWritten
  agent.destroy()
  return bytes
}

/** Bytes that a client sends over WebSocket, handshake and frames included. */
const bytesOverSocket = async (target: Target, turns: number): Promise<number> => {
  const socket = await open(target)
  let previous: string | undefined
  await loop((_, input) =>
    new Promise((resolve) => {
      const hear = (data: Buffer) => {
        const final = finalOf(data.toString())
        if (final === undefined) return
        socket.off("message", hear)
        previous = final.response?.id
        resolve(final)
      }
      socket.on("message", hear)
      const continued = previous === undefined ? {} : { previous_response_id: previous }
      socket.send(JSON.stringify({ type: "response.create", ...fields, ...continued, input }))
    }), turns)
  const bytes = (socket as unknown as { readonly _socket: Socket })._socket.bytesWritten
  await closeAll([socket])
  return bytes
}

/** Prints the memory of idle connections, and what a client sends in a tool loop. */
export const websocketsBench = (): Promise<void> =>
  withTargets(async (targets) => {
    const target = await targets.gateway("responses", "as shipped")
    const count = Math.max(40, 2000 * effort)
    const turns = 20
    const [overHttp, overSocket] = [await bytesOverHttp(target, turns), await bytesOverSocket(target, turns)]
    const idle = await idleBytes(target, count)
    const rows = [
      [`${count} idle connections, kB each`, idle / 1024, "≤ 40"],
      [`kB from the client in ${turns} turns with a tool, HTTP`, overHttp / 1024, ""],
      [`kB from the client in ${turns} turns with a tool, WebSocket`, overSocket / 1024, ""],
      ["… against HTTP", overSocket / overHttp, "< 1"]
    ] as const
    process.stdout.write(`${table(["", "value", "goal"], rows)}\n`)
  })
