/**
 * Golden frames as data: the whole gateway is asked through the vendors' SDKs, at a fixed time, and what went over the wire is
 * text. Ids, which are others each time, are numbered as they appear.
 */
import { Clock, Effect } from "effect"
import { businessKey } from "../support/gateway.ts"
import { makeMovedClock, type MovedClock } from "../support/movedClock.ts"
import { styleClients } from "../support/styleClients.ts"
import { untilHolds } from "../support/until.ts"
import { webGateway } from "../support/webGateway.ts"
import { type Body, embeddings, exchanges } from "./kinds.ts"

type Exchange = typeof exchanges[number]

const base = "http://gateway"
const started = Date.UTC(2026, 0, 2, 3, 4, 5)

/** Headers that are the same for all, or times. */
const isLeftOut = (name: string): boolean =>
  name.startsWith("access-control-") || name === "content-length" || name === "server-timing"

const keyHeaders = ["authorization", "x-api-key", "x-goog-api-key"]

const randomId = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<![0-9a-z])[0-9a-f]{20,}(?![0-9a-z])/g

/** Each id by its number, in as many characters as it has. */
const withNumberedIds = (text: string): string => {
  const numbers = new Map<string, number>()
  return text.replaceAll(randomId, (id) => {
    const plain = id.replaceAll("-", "")
    const number = numbers.get(plain) ?? numbers.size + 1
    numbers.set(plain, number)
    const digits = String(number)
    return id.replaceAll(/[0-9a-f]/g, "0").slice(0, -digits.length) + digits
  })
}

/** A request and its reply as one text. JSON bodies are laid out for reading, frames stand as they were sent. */
const written = async (request: Request, response: Response): Promise<string> => {
  const url = new URL(request.url)
  const headers = [...response.headers].filter(([name]) => !isLeftOut(name)).map(([name, value]) => `${name}: ${value}`)
  const body = await response.text()
  const isJson = response.headers.get("content-type")?.startsWith("application/json") === true
  return [
    `${request.method} ${url.pathname}${url.search}`,
    await request.text(),
    "",
    String(response.status),
    ...headers,
    "",
    isJson ? JSON.stringify(JSON.parse(body), null, 2) : body.replace(/\n$/, ""),
    ""
  ].join("\n")
}

type Fetch = typeof globalThis.fetch

/** Asks an upstream that is silent for so long: once it is, the time passes, and the upstream goes on when the headers are out. */
const throughSilence = (gateway: Fetch, clock: MovedClock, silence: number): Fetch => async (input, init) => {
  const answering = gateway(input, init)
  await untilHolds(() => clock.sleeping().includes(silence))
  clock.move(silence - 1)
  const response = await answering
  clock.move(1)
  return response
}

const exchangeText = async (gateway: Fetch, { kind, style, way }: Exchange): Promise<string> => {
  let text = ""
  const fetch: Fetch = async (input, init) => {
    let request = new Request(input, init)
    if (kind.key === "none") { for (const name of keyHeaders) request.headers.delete(name) }
    if (kind.edit !== undefined) {
      const body = kind.edit(await request.clone().json() as Body, style)
      request = new Request(request, { method: "POST", body: JSON.stringify(body) })
    }
    const response = await gateway(request.clone())
    text = await written(request, response.clone())
    return response
  }
  const apiKey = kind.key === "caller" ? "a-token" : businessKey
  await styleClients(base, { apiKey, fetch })[style][way](kind.ask)
  return withNumberedIds(text)
}

const embeddingsText = async (gateway: Fetch, body: Body): Promise<string> => {
  const request = new Request(`${base}/v1/embeddings`, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
    body: JSON.stringify(body)
  })
  return withNumberedIds(await written(request.clone(), await gateway(request)))
}

/** The text of an exchange with an upstream that is silent first, at a gateway with a clock of its own. */
const silentText = (exchange: Exchange, silence: number) =>
  Effect.gen(function*() {
    const clock = makeMovedClock({ still: true, wall: started })
    const gateway = yield* Effect.provideService(webGateway(), Clock.Clock, clock)
    return yield* Effect.promise(() => exchangeText(throughSilence(gateway, clock, silence), exchange))
  }).pipe(Effect.scoped)

/** Every golden file by its path below `test/fixtures/golden`. */
export const goldenFiles: Effect.Effect<ReadonlyMap<string, string>> = Effect.gen(function*() {
  const files = new Map<string, string>()
  const clock = makeMovedClock({ still: true, wall: started })
  const gateway = yield* Effect.provideService(
    webGateway({ embeddings: { provider: "builtin" } }),
    Clock.Clock,
    clock
  )
  for (const exchange of exchanges) {
    const { kind, style, way } = exchange
    const text = kind.silence === undefined
      ? yield* Effect.promise(() => exchangeText(gateway, exchange))
      : yield* silentText(exchange, kind.silence)
    files.set(`${style}/${kind.name}.${way}.txt`, text)
  }
  for (const { body, name } of embeddings) {
    files.set(`embeddings/${name}.whole.txt`, yield* Effect.promise(() => embeddingsText(gateway, body)))
  }
  return files
}).pipe(Effect.scoped, Effect.orDie)
