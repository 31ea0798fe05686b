/**
 * Bodies of many small values for every endpoint that takes JSON, over HTTP and as messages of a WebSocket. The same bytes as one text stand
 * beside each.
 *
 * A finding is a status of 5xx, or a body that costs more than ten times the processor time of the same bytes as text.
 */
import { WebSocket } from "@effect/platform-node/NodeWS"

/** Bytes of a body. */
const sizes = [60_000, 3_000_000]

/** Milliseconds below which no cost is a finding: the times of the system's clock and of the collector are coarse. */
const leastCost = 100

const mostTimes = 10

const filled = (size: number, value: (index: number) => string): string => {
  const values: Array<string> = []
  for (let length = 0; length < size; length += values.at(-1)!.length + 1) values.push(value(values.length))
  return values.join(",")
}

/** A body of a shape; `fields` are those that the endpoint needs first, with a comma behind. */
type Shape = (size: number, fields: string) => string

const asText: Shape = (size, fields) => `{${fields}"x":"${"a".repeat(size)}"}`

const shapes: Readonly<Record<string, Shape>> = {
  "empty objects": (size, fields) => `{${fields}"x":[${filled(size, () => "{}")}]}`,
  "digits": (size, fields) => `{${fields}"x":[${filled(size, () => "1")}]}`,
  "distinct fields": (size, fields) => `{${fields}${filled(size, (i) => `"f${i}":1`)}}`,
  "fields of a part": (size, fields) =>
    `{${fields}"messages":[{"role":"user","content":[{"type":"text","text":"a",${
      filled(size, (i) => `"f${i}":1`)
    }}]}]}`,
  "messages": (size, fields) => `{${fields}"messages":[${filled(size, () => `{"role":"user","content":"a"}`)}]}`
}

/** Sends a body and returns a status, or an error's status. */
type Send = (body: string) => Promise<number>

const costOf = async (send: Send, body: string): Promise<{ readonly status: number; readonly millis: number }> => {
  const before = process.cpuUsage()
  const status = await send(body)
  const { system, user } = process.cpuUsage(before)
  return { status, millis: (system + user) / 1000 }
}

/** Sends the bodies of all shapes and sizes. Returns the findings. */
const tryShapes = async (place: string, fields: string, send: Send): Promise<ReadonlyArray<string>> => {
  const findings: Array<string> = []
  for (const size of sizes) {
    const plain = await costOf(send, asText(size, fields))
    for (const [name, shape] of Object.entries(shapes)) {
      const { millis, status } = await costOf(send, shape(size, fields))
      const what = `${place}, ${size} bytes of ${name}`
      if (status >= 500 && status !== 503) findings.push(`${what}: status ${status}`)
      if (millis > mostTimes * Math.max(plain.millis, leastCost)) {
        findings.push(`${what}: ${millis.toFixed(0)} ms, as text ${plain.millis.toFixed(0)} ms`)
      }
    }
  }
  return findings
}

/** The paths of a document's operations with a JSON body. Parameters are `x`. */
const operationsOf = async (url: string, paths: RegExp) => {
  const document = await (await fetch(`${url}/openapi.json`)).json() as {
    readonly paths: Readonly<
      Record<string, Readonly<Record<string, { readonly requestBody?: { readonly content: object } }>>>
    >
  }
  return Object.entries(document.paths).filter(([path]) => paths.test(path)).flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([method, { requestBody }]) =>
      requestBody !== undefined && "application/json" in requestBody.content
        ? [{ method: method.toUpperCase(), path: path.replaceAll(/\{[^}]*\}/g, "x") }]
        : []
    )
  )
}

const overHttp = (url: string, method: string, key: string): Send => async (body) => {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" }
  const response = await fetch(url, { method, headers, body })
  await response.arrayBuffer()
  return response.status
}

/** Sends each body as a message, and waits for the end of its reply. */
const overWebSocket = (socket: WebSocket): Send => (body) =>
  new Promise((resolve, reject) => {
    const received = (data: unknown) => {
      const { status, type } = JSON.parse(String(data)) as { readonly type: string; readonly status?: number }
      if (type !== "error" && !/^response\.(?:completed|incomplete|failed)$/.test(type)) return
      socket.off("message", received).off("close", reject)
      resolve(status ?? 200)
    }
    socket.on("message", received).once("close", reject)
    socket.send(body)
  })

/** Tries the endpoints of a gateway whose paths match. Returns the findings. */
export const tryManyValues = async (url: string, key: string, paths: RegExp): Promise<ReadonlyArray<string>> => {
  const findings: Array<string> = []
  for (const { method, path } of await operationsOf(url, paths)) {
    const fields = path.startsWith("/admin") ? "" : `"model":"upstream-chat",`
    findings.push(...await tryShapes(`${method} ${path}`, fields, overHttp(`${url}${path}`, method, key)))
  }
  if (!paths.test("/v1/responses")) return findings
  const socket = new WebSocket(`${url.replace("http", "ws")}/v1/responses`, {
    headers: { authorization: `Bearer ${key}` }
  })
  await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject))
  const fields = `"type":"response.create","model":"upstream-chat","input":"a",`
  findings.push(...await tryShapes("WebSocket /v1/responses", fields, overWebSocket(socket)))
  socket.terminate()
  return findings
}
