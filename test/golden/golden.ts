/**
 * The golden data: every style before every driver, in each case of the matrix and of `cases`. A file has the exchanges of one style and one driver;
 * it depends on no other file.
 */
import { Effect, Struct } from "effect"
import type { RawConfig } from "../../src/config/json.ts"
import { Provider } from "../../src/testing/Provider.ts"
import { makeClient } from "../../src/testing/provider/client.ts"
import { faultFits, faultNames } from "../../src/testing/provider/faults.ts"
import { replies as scriptedReplies } from "../styles/replies.ts"
import type { Answer } from "../support/openaiServer.ts"
import { type Way, ways } from "../support/sameReply.ts"
import { type StyleName, styleNames } from "../support/styleClients.ts"
import { unreadFields } from "../support/unreadFields.ts"
import type { MatrixDriver } from "../upstream/matrix/driver.ts"
import { failures, streamFaults } from "../upstream/matrix/failures.ts"
import { generate } from "../upstream/matrix/generate.ts"
import { messages } from "../upstream/matrix/messages.ts"
import { openai } from "../upstream/matrix/openai.ts"
import { sharedReplies } from "../upstream/matrix/replies.ts"
import { sharedRequests } from "../upstream/matrix/requests.ts"
import { responses } from "../upstream/matrix/responses.ts"
import { asked, withFields } from "./cases/asked.ts"
import { answerElsewhere, embeddings, further } from "./cases/further.ts"
import { replies } from "./cases/replies.ts"
import { requests } from "./cases/requests.ts"
import { type Kind, kinds } from "./cases/scripts.ts"
import { parsed, sentBack } from "./cases/sentBack.ts"
import { type File, fileOf, type Recorded } from "./lines.ts"
import { overSocket } from "./socket.ts"
import { type Received, type Script, type Stand, started, startStand } from "./stand.ts"

/** One exchange: what is asked, and what the server does. */
interface Case {
  readonly name: string
  /** `before` is the body of the exchange before it. */
  readonly request: (before: string) => Request | Promise<Request>
  readonly script?: Script
  /** Milliseconds that the server waits first, in which the headers go out. */
  readonly silence?: number | undefined
  /** Another file has the request. */
  readonly isAskedElsewhere?: boolean
}

/** The upstream of each driver that calls a server. */
const upstreams: ReadonlyArray<readonly [name: string, MatrixDriver, RawConfig]> = [
  ["openai", openai, { driver: "openai" }],
  ["openai-responses", responses, { driver: "openai", api: "responses" }],
  ["messages", messages, { driver: "messages", base_url: "http://server.test" }],
  ["generate", generate, { driver: "generate", base_url: "http://server.test" }]
]

const isAskedWhole = ({ body, path }: Received): boolean =>
  path.includes("enerateContent") ? path.includes(":generateContent") : !/"stream":true/.test(body)

/** The style's requests of the matrix and of its own cases. */
const requestsOf = (style: StyleName): ReadonlyArray<readonly [name: string, fields: object]> => {
  const own = upstreams.flatMap(([, driver]) =>
    (driver.requests ?? []).map((row) => [`${row.name} (${driver.name})`, row.in[style]] as const)
  )
  const all: ReadonlyArray<readonly [string, object | undefined]> = [
    ...Struct.keys(sharedRequests).map((name) => [name, sharedRequests[name][style]] as const),
    ...own,
    ...Object.entries(requests[style])
  ]
  return all.flatMap(([name, fields]) => fields === undefined ? [] : [[name, fields] as const])
}

/** A request that lets the model call no other way. */
const demandsCall = /"tool_choice":(?:"required"|\{"type":"(?:tool|any|function|custom|allowed_tools)")|"mode":"ANY"/

const answerTo = (driver: MatrixDriver): Script => (request) =>
  answerElsewhere(request) ?? driver.write(
    demandsCall.test(request.body)
      ? [{ _tag: "Call", name: "f", arguments: { city: "Oslo" } }]
      : [{ _tag: "Text", text: "Hello" }],
    demandsCall.test(request.body) ? "tool_calls" : "stop",
    !isAskedWhole(request)
  )

const requestCases = (
  style: StyleName,
  rows: ReadonlyArray<readonly [name: string, fields: object]>,
  isAskedElsewhere: boolean,
  script?: Script
): ReadonlyArray<Case> =>
  rows.map(([name, fields]) => ({
    name,
    isAskedElsewhere,
    request: () => withFields(style, { ...fields }),
    ...(script === undefined ? {} : { script })
  }))

/** Replies in the form that was asked for, and in the other one. */
const replyCases = (style: StyleName, driver: MatrixDriver): ReadonlyArray<Case> => [
  ...sharedReplies.flatMap(({ ask, ends, name, written }) =>
    ways.flatMap((way) =>
      ([true, false] as const).map((fits): Case => ({
        name: `${name}, ${way}${fits ? "" : ", answered in the other form"}`,
        request: () => asked(style, way, { content: "Go", ...ask }),
        script: (request) => driver.write(written, ends, isAskedWhole(request) !== fits)
      }))
    )
  ),
  ...[...driver.replies ?? [], ...replies[driver.name]].flatMap(({ answer, ask, name }) => [
    ...(["streamed", "whole"] as const).map((way): Case => ({
      name: `${name}, ${way}`,
      request: () => asked(style, way, { content: "Go", ...ask }),
      script: () => answer
    })),
    {
      name: `${name}, sent back`,
      request: (before: string) => withFields(style, sentBack[style](parsed(before))),
      script: answerTo(driver)
    }
  ])
]

const failureCases = (style: StyleName, driver: MatrixDriver): ReadonlyArray<Case> => {
  const refusals: ReadonlyArray<readonly [string, Answer]> = [
    ...Struct.keys(failures).map((name) => [name, driver.failures[name]] as const),
    ...(driver.furtherFailures ?? []).map(([name, answer]) => [name, answer] as const)
  ]
  const faults: ReadonlyArray<readonly [string, Answer]> = [
    ...Struct.keys(streamFaults).map((name) => [name, driver.streamFaults[name]] as const),
    ...(driver.furtherStreamFaults ?? []).map(([name, fault]) => [name, fault] as const)
  ]
  const places: ReadonlyArray<readonly [string, Answer]> = [
    ...refusals,
    ...faults.map(([name, fault]) => [`${name} before the first text`, fault] as const),
    ...faults.map(([name, fault]) =>
      [`${name} after the first text`, { ...fault, pieces: [driver.hello, ...fault.pieces ?? []] }] as const
    )
  ]
  return places.flatMap(([name, answer]) =>
    ways.map((way): Case => ({
      name: `${name}, ${way}`,
      request: () => withFields(style, {}, way),
      script: () => answer
    }))
  )
}

const furtherCases = (style: StyleName, script?: Script): ReadonlyArray<Case> =>
  further[style].map(({ name, request }) => ({ name, request, ...(script === undefined ? {} : { script }) }))

const keyHeaders = ["authorization", "x-api-key", "x-goog-api-key"]

const scriptedRequest = async (style: StyleName, kind: Kind, way: Way): Promise<Request> => {
  const request = await asked(style, way, kind.ask, ...(kind.key === "caller" ? ["a-token"] : []))
  if (kind.key === "none") { for (const name of keyHeaders) request.headers.delete(name) }
  return kind.edit === undefined
    ? request
    : new Request(request, { method: "POST", body: JSON.stringify(kind.edit(await request.json(), style)) })
}

/** What a server does that follows the script of the prompt. */
const scriptedCases = (style: StyleName): ReadonlyArray<Case> =>
  kinds.filter(({ styles }) => styles?.includes(style) ?? true).flatMap((kind) =>
    ways.filter((way) => kind.ways?.includes(way) ?? true).map((way): Case => ({
      name: `${kind.name}, ${way}`,
      silence: kind.silence,
      request: () => scriptedRequest(style, kind, way)
    }))
  )

/** Faults with more bytes than the data needs. */
const long: ReadonlySet<string> = new Set(["long-line", "endless-incomplete", "linger", "chatter", "trickle", "slow"])

/** Every other reply of the table of replies, and every fault that may happen to a completion. */
const sessionCases = (style: StyleName): ReadonlyArray<Case> => [
  ...scriptedReplies.flatMap(({ ask, name }) =>
    ways.map((way): Case => ({ name: `the reply ${name}, ${way}`, request: () => asked(style, way, ask) }))
  ),
  ...faultNames.filter((name) => !long.has(name) && faultFits(name, "completion")).flatMap((name) =>
    ways.map((way): Case => ({
      name: `the fault ${name}, ${way}`,
      request: () => asked(style, way, { content: `!count 4\n!fault ${name} times=3` })
    }))
  )
]

const play = (stand: Stand, cases: ReadonlyArray<Case>) =>
  Effect.promise(async () => {
    const recorded: Array<Recorded> = []
    let before = ""
    for (const { isAskedElsewhere, name, request, script, silence } of cases) {
      const asking = await request(before)
      stand.answer(script ?? (() => ({})))
      const url = new URL(asking.url)
      const body = await asking.clone().text()
      const response = await (silence === undefined ? stand.fetch(asking) : stand.fetchThrough(silence, asking))
      before = await response.text()
      recorded.push({
        name,
        asked: isAskedElsewhere === true ? undefined : { method: asking.method, path: url.pathname + url.search, body },
        got: { status: response.status, headers: [...response.headers], body: before },
        received: stand.received
      })
    }
    return recorded
  })

const sessionServer = (silent: () => void) => {
  const provider = new Provider({}, () => started)
  let { silences } = provider.report()
  provider.onChange(() => {
    const now = provider.report().silences
    if (now > silences) silent()
    silences = now
  })
  return makeClient(provider)
}

const overServer = (style: StyleName, driver: MatrixDriver, upstream: RawConfig): File["exchanges"] =>
  Effect.gen(function*() {
    const models = driver.models
    const script = answerTo(driver)
    const stand = yield* startStand({ upstream: { models, ...upstream } })
    const own = yield* startStand({ upstream: { models, ...upstream, errors: "own" } })
    const failing = failureCases(style, driver)
    return [
      ...yield* play(stand, [
        ...requestCases(style, [...requestsOf(style), ...unreadFields(style)], driver !== openai, script),
        ...furtherCases(style, script),
        ...replyCases(style, driver),
        ...failing
      ]),
      ...yield* play(
        own,
        failing.filter(({ name }) => name.endsWith("whole")).map((one) => ({
          ...one,
          name: `${one.name}, as the gateway's own error`
        }))
      )
    ]
  })

const overScripts = (
  style: StyleName,
  upstream: RawConfig,
  cases: ReadonlyArray<Case>,
  server?: typeof sessionServer
) => Effect.flatMap(startStand({ upstream }, server), (stand) => play(stand, [...cases, ...furtherCases(style)]))

/** Every golden file. What the tables of requests ask stands in the files of the first driver alone. */
export const goldenFiles: ReadonlyArray<File> = [
  ...styleNames.flatMap((style): ReadonlyArray<File> => [
    ...upstreams.map(([name, driver, upstream]) => fileOf(`${style}/${name}`, overServer(style, driver, upstream))),
    fileOf(
      `${style}/session`,
      overScripts(
        style,
        { driver: "session", base_url: "http://server.test" },
        [...requestCases(style, requestsOf(style), true), ...sessionCases(style)],
        sessionServer
      )
    ),
    fileOf(`${style}/embedded`, overScripts(style, { driver: "embedded", timeouts: {} }, scriptedCases(style)))
  ]),
  ...upstreams.map(([name, driver, { base_url: _, ...upstream }]) =>
    fileOf(`responses/${name}.socket`, overSocket(driver, upstream))
  ),
  ...upstreams.map(([name, driver, upstream]) =>
    fileOf(
      `embeddings/${name}`,
      Effect.flatMap(
        startStand({ embeddings: { provider: "upstream" }, upstream }),
        (stand) => play(stand, embeddings.map(({ name, request }) => ({ name, request, script: answerTo(driver) })))
      )
    )
  ),
  fileOf(
    "embeddings/embedded",
    Effect.flatMap(
      startStand({ embeddings: { provider: "builtin" }, upstream: { driver: "embedded" } }),
      (stand) => play(stand, embeddings.map(({ name, request }) => ({ name, request })))
    )
  )
]
