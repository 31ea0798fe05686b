import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import * as TestClock from "effect/testing/TestClock"
import { readFileSync } from "node:fs"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { AdminEnvironment } from "../../src/admin/AdminEnvironment.ts"
import { LatestRelease } from "../../src/admin/system/LatestRelease.ts"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import { caller } from "./support.ts"

const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
  readonly version: string
}

const release = (tag: string) => ({
  tag_name: tag,
  html_url: `https://releases.example/${tag}`,
  published_at: "2026-01-02T03:04:05Z",
  body: "notes"
})

describe("GET /admin/version", () => {
  /** The replies of the release server, by path. */
  const answers: Record<string, readonly [status: number, body: string, headers?: Record<string, string>]> = {
    "/newer": [200, JSON.stringify(release("v99.1.0"))],
    "/moved": [301, "", { location: "/newer" }],
    "/same": [200, JSON.stringify(release(`v${version}`))],
    "/prerelease": [200, JSON.stringify(release(`${version}-rc.1`))],
    "/named": [200, JSON.stringify(release("model-gateway@99.0.0"))],
    "/bare": [200, JSON.stringify({ tag_name: "v99.0.0", html_url: null })],
    "/nightly": [200, JSON.stringify(release("nightly"))],
    "/page": [200, "<html></html>"],
    "/missing": [404, "{\"message\":\"Not Found\"}"]
  }
  let server: Server
  let base: string

  beforeAll(async () => {
    server = createServer((request, response) => {
      const answer = answers[request.url ?? ""]
      if (answer === undefined) {
        request.socket.destroy()
        return
      }
      const named = /^model-gateway\/\d/.test(request.headers["user-agent"] ?? "")
      response.writeHead(named ? answer[0] : 403, answer[2])
      response.end(answer[1])
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterAll(() => server.close())

  const ask = async (environment: Record<string, string>) => {
    const gateway: RunningGateway = await startGateway({}, { environment })
    try {
      const call = caller(() => gateway)
      assert.strictEqual((await call("GET", "/admin/version", { bearer: null })).status, 401)
      const answer = await call("GET", "/admin/version")
      assert.strictEqual(answer.status, 200)
      return answer.json
    } finally {
      await gateway.stop()
    }
  }

  const build = {
    success: true,
    current_version: version,
    current_tag: `v${version}`,
    source: "package.json",
    build: {
      commit: null,
      date: null,
      node: process.versions.node,
      platform: `${process.platform}-${process.arch}`,
      form: "source"
    }
  }

  it("shows the running build and the latest release", async () => {
    for (const path of ["/newer", "/moved"]) {
      const { checked_at, ...reply } = await ask({ GATEWAY_RELEASES_URL: `${base}${path}` })
      assert.deepStrictEqual(reply, {
        ...build,
        latest_tag: "v99.1.0",
        latest_version: "99.1.0",
        release_url: "https://releases.example/v99.1.0",
        published_at: "2026-01-02T03:04:05Z",
        has_update: true
      })
      assert.strictEqual(new Date(String(checked_at)).toISOString(), checked_at)
    }
  })

  it("compares versions by semantic precedence", async () => {
    for (const [path, has_update] of [["/same", false], ["/prerelease", false], ["/named", true]] as const) {
      assert.deepInclude(await ask({ GATEWAY_RELEASES_URL: `${base}${path}` }), { has_update }, path)
    }
    assert.deepInclude(await ask({ GATEWAY_RELEASES_URL: `${base}/bare` }), {
      latest_version: "99.0.0",
      release_url: null,
      published_at: null
    })
  })

  it("reports a failed lookup as check_error, with HTTP 200", async () => {
    const faults: ReadonlyArray<readonly [Record<string, string>, string]> = [
      [{}, "GATEWAY_RELEASES_URL is not set: no release was looked up"],
      [{ GATEWAY_RELEASES_URL: `${base}/missing` }, "the release server answered with HTTP 404"],
      [{ GATEWAY_RELEASES_URL: `${base}/page` }, "the release server's answer is no latest-release document"],
      [{ GATEWAY_RELEASES_URL: `${base}/nightly` }, "the latest release's tag names no semantic version"],
      [{ GATEWAY_RELEASES_URL: `${base}/reset` }, "the release server cannot be reached"]
    ]
    for (const [environment, check_error] of faults) {
      const { checked_at: _, ...reply } = await ask(environment)
      assert.deepStrictEqual(reply, {
        ...build,
        latest_tag: null,
        latest_version: null,
        release_url: null,
        published_at: null,
        has_update: false,
        check_error
      })
    }
  })
})

describe("the lookup of the latest release", () => {
  const withServer = (answer: () => Effect.Effect<Response>) => {
    let asked = 0
    const client = HttpClient.make((request) => {
      asked++
      return Effect.map(answer(), (response) => HttpClientResponse.fromWeb(request, response))
    })
    return {
      asked: () => asked,
      layer: LatestRelease.layer.pipe(
        Layer.provide(Layer.succeed(HttpClient.HttpClient, client)),
        Layer.provide(Layer.succeed(AdminEnvironment, {
          hosting: { token: undefined, projectId: undefined, teamId: undefined, apiUrl: undefined },
          releasesUrl: "http://releases.example/latest"
        }))
      )
    }
  }

  it.effect("is cached for an hour, and shared by concurrent requests", () => {
    const server = withServer(() => Effect.sync(() => Response.json(release("v1.0.0"))))
    return Effect.gen(function*() {
      const latest = yield* LatestRelease
      yield* Effect.all([latest.get, latest.get, latest.get], { concurrency: "unbounded" })
      yield* TestClock.adjust("59 minutes")
      const remembered = yield* latest.get
      assert.strictEqual(server.asked(), 1)
      assert.strictEqual(remembered.checkedAt, 0)
      yield* TestClock.adjust("2 minutes")
      assert.strictEqual((yield* latest.get).checkedAt, 61 * 60 * 1000)
      assert.strictEqual(server.asked(), 2)
    }).pipe(Effect.provide(server.layer))
  })

  it.effect("is repeated a minute after a failure", () => {
    const server = withServer(() => Effect.sync(() => new Response("", { status: 500 })))
    return Effect.gen(function*() {
      const latest = yield* LatestRelease
      yield* Effect.flip(latest.get)
      yield* Effect.flip(latest.get)
      assert.strictEqual(server.asked(), 1)
      yield* TestClock.adjust("61 seconds")
      yield* Effect.flip(latest.get)
      assert.strictEqual(server.asked(), 2)
    }).pipe(Effect.provide(server.layer))
  })

  it.effect("times out after 4 seconds", () => {
    const server = withServer(() => Effect.never)
    return Effect.gen(function*() {
      const latest = yield* LatestRelease
      const asking = yield* Effect.forkChild(Effect.flip(latest.get))
      yield* TestClock.adjust("3900 millis")
      assert.isUndefined(asking.pollUnsafe())
      yield* TestClock.adjust("100 millis")
      const unknown = yield* Fiber.join(asking)
      assert.strictEqual(unknown.message, "the release server did not answer within 4 seconds")
    }).pipe(Effect.provide(server.layer))
  })
})
