/** A server that webhooks are delivered to, and an independent check of what arrives, by the text of Standard Webhooks. */
import { createHmac, timingSafeEqual } from "node:crypto"
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

/** A delivery as it came. */
export interface Received {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly body: { readonly type: string; readonly timestamp: string; readonly data: Record<string, unknown> }
}

export interface Receiver {
  readonly url: string
  readonly received: Array<Received>
  /** The types that have come, in order. */
  readonly types: () => ReadonlyArray<string>
  /** Answers each delivery; by default with 204. */
  answer: (response: ServerResponse, delivery: Received) => void
  readonly stop: () => Promise<void>
}

export const startReceiver = async (): Promise<Receiver> => {
  const received: Array<Received> = []
  const server = createServer((request, response) => {
    const parts: Array<Buffer> = []
    request.on("data", (part: Buffer) => parts.push(part))
    request.on("end", () => {
      const text = Buffer.concat(parts).toString()
      const delivery = {
        path: request.url ?? "",
        headers: request.headers,
        text,
        body: JSON.parse(text) as Received["body"]
      }
      received.push(delivery)
      receiver.answer(response, delivery)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const receiver: Receiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    received,
    types: () => received.map(({ body }) => body.type),
    answer: (response) => void response.writeHead(204).end(),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
  }
  return receiver
}

/** Whether one of the signatures of a delivery is that of a secret, by the standard's text. */
export const isSignedBy = (secret: string, { headers, text }: Pick<Received, "headers" | "text">): boolean => {
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64")
  const content = `${String(headers["webhook-id"])}.${String(headers["webhook-timestamp"])}.${text}`
  const expected = createHmac("sha256", key).update(content).digest()
  return String(headers["webhook-signature"]).split(" ").some((each) => {
    const [version, signature = ""] = each.split(",")
    const given = Buffer.from(signature, "base64")
    return version === "v1" && given.length === expected.length && timingSafeEqual(given, expected)
  })
}
