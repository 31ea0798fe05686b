/** Servers that answer one question: which one is the primary of a store. */
import * as Effect from "effect/Effect"
import { createServer, type Socket } from "node:net"

/** The text of a reply: a list for a sentinel, lines for a node of a cluster. */
export type GuideReply = ReadonlyArray<string> | string

export interface Guide {
  readonly port: number
  /** What it answers from now on. */
  readonly says: (reply: GuideReply) => void
  /** Ends it, as a crash does. */
  readonly dies: () => void
}

const bulk = (text: string): string => `$${Buffer.byteLength(text)}\r\n${text}\r\n`
const encode = (reply: GuideReply): string =>
  typeof reply === "string" ? bulk(reply) : `*${reply.length}\r\n${reply.map(bulk).join("")}`

/** The reply of a sentinel. */
export const sentinelReply = (port: number, epoch: number): GuideReply => [
  "name",
  "main",
  "ip",
  "127.0.0.1",
  "port",
  String(port),
  "config-epoch",
  String(epoch)
]

/** Starts a server; the scope ends it. */
export const startGuide = Effect.acquireRelease(
  Effect.callback<Guide>((resume) => {
    let answer = encode("")
    const sockets = new Set<Socket>()
    const server = createServer((socket) => {
      sockets.add(socket)
      let received = ""
      socket.on("error", () => undefined).on("close", () => sockets.delete(socket))
      socket.on("data", (bytes) => {
        received += bytes.toString("latin1")
        // A command is the number of its words, then each with its length.
        for (;;) {
          const head = /^\*(\d+)\r\n/.exec(received)
          const words = Number(head?.[1] ?? 0)
          const command = new RegExp(`^\\*\\d+\r\n(?:\\$\\d+\r\n[^\r]*\r\n){${words}}`).exec(received)?.[0]
          if (head === null || command === undefined) return
          received = received.slice(command.length)
          socket.write(/\r\n(?:SENTINEL|CLUSTER)\r\n/.test(command) ? answer : "+OK\r\n")
        }
      })
    })
    const dies = () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    }
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      resume(Effect.succeed({
        port: typeof address === "object" && address !== null ? address.port : 0,
        says: (reply) => {
          answer = encode(reply)
        },
        dies
      }))
    })
  }),
  (guide) => Effect.sync(guide.dies)
)
