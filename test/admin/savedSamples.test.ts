/** Saved samples: listed, replayed in every style with any upstream, and deleted. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import { parseFrames } from "../support/sse.ts"
import { caller, storeOf } from "./support.ts"

const home = mkdtempSync(path.join(tmpdir(), "saved-samples-"))
const dir = path.join(home, "samples")
let gateway: RunningGateway
const call = caller(() => gateway)

beforeAll(async () => {
  gateway = await startGateway({ samples: { dir } })
  for (const [sample_id, message] of [["first", "!say one two"], ["second", "!think hm\n!say three"]] as const) {
    const model = sample_id === "second" ? "upstream-reasoner" : "upstream-chat"
    const answer = await call("POST", "/admin/dev/raw-samples/capture", { body: { message, sample_id, model } })
    assert.strictEqual(answer.status, 200)
  }
  // From here on the configured upstream has no scripted reply.
  await Effect.runPromise(
    storeOf(gateway).update((raw) =>
      Effect.succeed({ ...raw, upstream: { driver: "session", base_url: "http://127.0.0.1:1" } })
    )
  )
})
afterAll(async () => {
  await gateway.stop()
  rmSync(home, { recursive: true })
})

const list = async () =>
  (await call("GET", "/admin/dev/raw-samples")).json["items"] as ReadonlyArray<Record<string, unknown>>
const replay = (body: unknown) => call("POST", "/admin/dev/raw-samples/replay", { body })

describe("saved samples", () => {
  it("are listed newest first, without other files of their folder", async () => {
    mkdirSync(path.join(dir, "no-sample"))
    mkdirSync(path.join(home, "elsewhere"))
    writeFileSync(path.join(dir, "file"), "")
    symlinkSync(path.join(dir, "first"), path.join(dir, "linked"))
    mkdirSync(path.join(dir, "piped"))
    execFileSync("mkfifo", [path.join(dir, "piped", "meta.json")])
    const items = await list()
    assert.deepStrictEqual(
      items.map(({ created_at: _at, bytes: _bytes, ...item }) => item),
      [
        { sample_id: "second", model: "upstream-reasoner", round_count: 1, status: 200 },
        { sample_id: "first", model: "upstream-chat", round_count: 1, status: 200 }
      ]
    )
    for (const { bytes, created_at } of items) {
      assert.isAbove(Number(bytes), 0)
      assert.isAtMost(Math.abs(Number(created_at) - Date.now()), 600_000)
    }
  })

  it("are listed without a sample whose meta.json is invalid", async () => {
    const description = JSON.parse(readFileSync(path.join(dir, "first", "meta.json"), "utf8"))
    const [round] = description.rounds
    for (
      const spoilt of [
        { created_at: "yesterday" },
        { created_at: "" },
        { rounds: [{ ...round, length: -1 }] },
        { rounds: [round, round].map((each) => ({ ...each, length: Number.MAX_SAFE_INTEGER })) }
      ]
    ) {
      cpSync(path.join(dir, "first"), path.join(dir, "spoilt"), { recursive: true })
      writeFileSync(path.join(dir, "spoilt", "meta.json"), JSON.stringify({ ...description, ...spoilt }))
      const answer = await call("GET", "/admin/dev/raw-samples")
      assert.strictEqual(answer.status, 200, answer.text)
      assert.deepStrictEqual((await list()).map(({ sample_id }) => sample_id), ["second", "first"])
      rmSync(path.join(dir, "spoilt"), { recursive: true })
    }
  })

  it("are replayed in every style, whole and streamed, from the files alone", async () => {
    for (const style of ["chat", "responses", "messages", "generate"]) {
      const whole = await replay({ sample_id: "second", style })
      assert.strictEqual(whole.status, 200, whole.text)
      assert.match(whole.headers.get("content-type") ?? "", /^application\/json/)
      assert.include(whole.text, "three")
      assert.include(whole.text, "hm")
      const stream = await replay({ sample_id: "first", style, stream: true })
      assert.match(stream.headers.get("content-type") ?? "", /^text\/event-stream/)
      assert.isAtLeast(parseFrames(stream.text).length, 2)
      assert.match(stream.text, /one/)
      assert.strictEqual(stream.headers.get("cache-control"), "no-store")
    }
  })

  it("answer 404 for an unknown sample, and 400 for an unknown style", async () => {
    for (const sample_id of ["third", "linked", "no-sample", "../elsewhere"]) {
      assert.strictEqual((await replay({ sample_id, style: "chat" })).status, 404, sample_id)
      assert.strictEqual(
        (await call("DELETE", `/admin/dev/raw-samples/${encodeURIComponent(sample_id)}`)).status,
        404,
        sample_id
      )
    }
    assert.strictEqual((await replay({ sample_id: "first", style: "poetry" })).status, 400)
    assert.strictEqual((await replay({ style: "chat" })).status, 400)
    assert.isTrue(existsSync(path.join(home, "elsewhere")))
  })

  it("are deleted with all their files", async () => {
    assert.deepStrictEqual((await call("DELETE", "/admin/dev/raw-samples/first")).json, { success: true })
    assert.deepStrictEqual((await list()).map(({ sample_id }) => sample_id), ["second"])
    assert.sameMembers(readdirSync(dir), ["second", "no-sample", "file", "linked", "piped"])
    assert.strictEqual((await call("DELETE", "/admin/dev/raw-samples/first")).status, 404)
  })
})
