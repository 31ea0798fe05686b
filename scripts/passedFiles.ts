// `scripts/passedFiles.ts [session|responses]`: the files that a streamed chat passes before a server of the session protocol, or a streamed Responses
// request before a Responses server, in the folders of contracts, styles, completions and upstreams, so without the pool: down, until the server has
// the request, and up, for each event of its reply. Prints both as JSON. What ran is read from the engine's coverage, in a process of its own. What
// ran only now and then is left out.
import { subscribe } from "node:diagnostics_channel"
import type { IncomingMessage } from "node:http"
import { Session } from "node:inspector"
import path from "node:path"
import { pathToFileURL } from "node:url"
import { startCountingUpstream } from "../test/hotPath/upstream.ts"
import { businessKey, startGateway } from "../test/support/gateway.ts"

const source = `${pathToFileURL(path.join(import.meta.dirname, "..", "src")).href}/`
const folders = /^src\/(?:contracts|styles|completion|upstream)\//
const pieces = 10
const requests = 3
const inspector = new Session()
inspector.connect()
inspector.post("Profiler.enable")
inspector.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false })

/** The files of which a function ran since this was asked last. */
const ran = (): ReadonlyArray<string> => {
  let files: ReadonlyArray<string> = []
  inspector.post("Profiler.takePreciseCoverage", (error, covered) => {
    if (error !== null) throw error
    files = covered.result.filter(({ functions, url }) =>
      url.startsWith(source) &&
      functions.some(({ functionName, ranges }) => functionName !== "" && ranges[0]!.count > 0)
    ).map(({ url }) => `src/${url.slice(source.length)}`).filter((file) => folders.test(file)).toSorted()
  })
  return files
}

/** Lets everything run that does not wait for the network. */
const settled = () => new Promise((resolve) => setTimeout(resolve, 50))

const ways = {
  session: {
    server: "/api/v0/chat/completion",
    base: "",
    path: "/v1/chat/completions",
    body: { messages: [{ role: "user", content: "Hi" }] }
  },
  responses: { server: "/v1/responses", base: "/v1", path: "/v1/responses", body: { input: "Hi" } }
}
const driver = process.argv[2] === "responses" ? "responses" : "session"
const { base, body, path: asked, server } = ways[driver]

let onCompletion: () => void = () => undefined
subscribe("http.server.request.start", (message) => {
  const { request } = message as { readonly request: IncomingMessage }
  if (request.url === server && request.headers.host === new URL(upstream.url).host) onCompletion()
})

const upstream = await startCountingUpstream()
upstream.pieces = pieces
const gateway = await startGateway({
  accounts: [{ token: "a" }],
  captures: { enabled: false },
  upstream: { driver, base_url: `${upstream.url}${base}` }
})

/** Asks; calls `onPiece` for each chunk of the reply. */
const ask = async (onPiece: () => void) => {
  const response = await fetch(`${gateway.url}${asked}`, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "upstream-chat", stream: true, ...body })
  })
  for await (const _ of response.body!) {
    await settled()
    onPiece()
    upstream.release()
  }
}

const inAll = (times: ReadonlyArray<ReadonlyArray<string>>): ReadonlyArray<string> =>
  (times[0] ?? []).filter((file) => times.every((files) => files.includes(file)))

// What the first request prepares is no part of later ones.
await ask(() => undefined)
const down: Array<ReadonlyArray<string>> = []
const up: Array<ReadonlyArray<string>> = []
onCompletion = () => down.push(ran())
for (let request = 0; request < requests; request++) {
  await settled()
  ran()
  let piece = 0
  await ask(() => {
    const files = ran()
    // The first and the last chunk have the beginning and the end of the reply.
    if (piece > 0 && piece < pieces - 2) up.push(files)
    piece++
  })
}
process.stdout.write(JSON.stringify({ down: inAll(down), up: inAll(up) }))
process.exit()
