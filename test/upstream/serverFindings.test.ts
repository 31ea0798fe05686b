/** Servers that do not answer, and models that their lists lack: told at the start, in the log, at /readyz and by tests of an upstream. */
import { afterEach, assert, describe, it } from "@effect/vitest"
import { Logger } from "effect"
import { missingModels } from "../../src/upstream/ServerFindings.ts"
import { adminKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { makeMovedClock } from "../support/movedClock.ts"
import { modelList, type OpenAiServer, startOpenAiServer } from "../support/openaiServer.ts"
import { untilHolds } from "../support/until.ts"

let gateway: RunningGateway | undefined
let server: OpenAiServer | undefined
afterEach(async () => {
  await gateway?.stop()
  await server?.stop()
})

const readyz = async () => {
  const response = await fetch(`${gateway!.url}/readyz`)
  assert.strictEqual(response.status, 200)
  return await response.json() as { readonly status: string; readonly detail?: string }
}

const admin = async (path: string, method = "GET", body?: object) => {
  const response = await fetch(gateway!.url + path, {
    method,
    headers: { authorization: `Bearer ${adminKey}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) })
  })
  return await response.json() as never
}

/** The address of a server that has stopped. */
const closedAddress = async (): Promise<string> => {
  const stopped = await startOpenAiServer()
  await stopped.stop()
  return stopped.baseUrl
}

const collected = () => {
  const lines: Array<string> = []
  const logger = Logger.make<unknown, void>(({ logLevel, message }) => {
    lines.push(`${logLevel} ${Array.isArray(message) ? message.join(" ") : String(message)}`)
  })
  return { lines, logger }
}

describe("a server that does not answer", () => {
  it("is named with the cause, while the gateway stays ready, until it answers", async () => {
    const { lines, logger } = collected()
    const clock = makeMovedClock()
    const base_url = await closedAddress()
    gateway = await startGateway({ upstreams: { local: { driver: "openai", base_url } }, upstream: {} }, {
      logger,
      clock
    })
    const sentence = "upstream local does not answer: the connection was refused"
    assert.deepInclude(await readyz(), { status: "ready", detail: sentence })
    assert.include(lines, `Warn ${sentence}`)
    const { upstreams } = await admin("/admin/upstreams") as {
      readonly upstreams: ReadonlyArray<{
        readonly name: string
        readonly findings: ReadonlyArray<string>
        readonly away: { readonly reason: string; readonly since: number } | null
      }>
    }
    const away = upstreams.map((each) => each.away)
    assert.deepStrictEqual(away.map((each) => each?.reason), [undefined, "the connection was refused"])
    assert.isAtMost(away[1]!.since, clock.currentTimeMillisUnsafe())
    assert.deepStrictEqual(upstreams.map(({ findings, name }) => [name, findings]), [["default", []], ["local", [
      sentence
    ]]])

    server = await startOpenAiServer(Number(new URL(base_url).port))
    server.list(() => modelList("m"))
    clock.move(30_000)
    await untilHolds(async () => (await readyz()).detail === undefined)
    assert.include(lines, "Info upstream local answers")
  })
})

describe("a model that the server's list lacks", () => {
  it("is named with the nearest names, at the start and by the upstream's test", async () => {
    server = await startOpenAiServer()
    server.list(() => modelList("qwen3:14b", "other:latest"))
    const upstream = { driver: "openai", base_url: server.baseUrl, models: { small: "qwen3:8b", other: "other" } }
    gateway = await startGateway({ upstream })
    const sentence = `upstream.models.small names "qwen3:8b", which the server does not list; did you mean "qwen3:14b"?`
    assert.strictEqual((await readyz()).detail, sentence)
    const tested = await admin("/admin/upstreams/default/test", "POST", {}) as { readonly message: string }
    assert.strictEqual(tested.message, `The upstream answers; ${sentence}`)
  })

  it("is named no longer once the configuration names a listed one", async () => {
    server = await startOpenAiServer()
    server.list(() => modelList("qwen3:14b"))
    const upstream = { driver: "openai", base_url: server.baseUrl, models: { small: "qwen3:8b" } }
    gateway = await startGateway({ upstreams: { gpu: upstream } })
    assert.match((await readyz()).detail ?? "", /^upstreams\.gpu\.models\.small names "qwen3:8b"/)
    await admin("/admin/upstreams/gpu", "PATCH", { models: { small: "qwen3:14b" } })
    await untilHolds(async () => (await readyz()).detail === undefined)
    await admin("/admin/upstreams/gpu", "PATCH", { models: { small: "qwen3:14" } })
    await untilHolds(async () => (await readyz()).detail?.includes(`did you mean "qwen3:14b"?`) === true)
    await admin("/admin/upstreams/gpu", "PATCH", { enabled: false })
    await untilHolds(async () => (await readyz()).detail === undefined)
  })

  it("is found in lists with names alone, and eight times an upstream at most", () => {
    const models = Array.from(
      { length: 20 },
      (_, i) => ({ id: `m${i}`, model: `x${i}`, reasoning: false, search: false })
    )
    assert.deepStrictEqual(missingModels({ name: "gpu", models }, []), [])
    assert.lengthOf(missingModels({ name: "gpu", models }, ["other"]), 8)
    assert.lengthOf(missingModels({ name: "gpu", models }, models.map(({ model }) => model.toUpperCase())), 0)
  })
})
