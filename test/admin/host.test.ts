import { afterEach, assert, beforeEach, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Logger } from "effect"
import { HttpClient } from "effect/http"
import * as Redacted from "effect/Redacted"
import * as TestClock from "effect/testing/TestClock"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { AccountTests } from "../../src/admin/accounts/AccountTests.ts"
import { AdminEnvironment } from "../../src/admin/AdminEnvironment.ts"
import { HostSync, HostSyncFailure } from "../../src/admin/host/HostSync.ts"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import { Environment } from "../../src/config/Environment.ts"
import { transferJson } from "../support/configServices.ts"
import { adminKey, businessKey, type GatewayOptions, type RunningGateway, startGateway } from "../support/gateway.ts"
import {
  type HostingPlatform,
  type PlatformCall,
  type PlatformFault,
  startPlatform
} from "../support/hostingPlatform.ts"
import { type Answer, caller, storeOf } from "./support.ts"

const variable = "GATEWAY_CONFIG_JSON"
const accounts = [{ email: "a@example.com", password: "p" }, { email: "b@example.com", password: "p" }]

let platform: HostingPlatform
let gateway: RunningGateway
const lines: Array<string> = []
const logger = Logger.make<unknown, void>((options) => {
  lines.push(JSON.stringify(Logger.formatStructured.log(options)))
})
const call = caller(() => gateway)

const start = (environment: Record<string, string> = {}, options: GatewayOptions = {}) =>
  startGateway({ accounts }, { logger, environment: { HOST_API_URL: platform.url, ...environment }, ...options })

const restart = async (environment: Record<string, string>, options: GatewayOptions = {}) => {
  await gateway.stop()
  gateway = await start(environment, options)
}

beforeEach(async () => {
  lines.length = 0
  platform = await startPlatform()
  gateway = await start()
})
afterEach(async () => {
  await gateway.stop()
  await platform.stop()
})

const credentials = () => ({ host_token: platform.token, project_id: platform.projectId })
const sync = (body: unknown = credentials()) => call("POST", "/admin/host/sync", { body })
const status = async () => (await call("GET", "/admin/host/status")).json
const exported = async () => (await call("GET", "/admin/config/export")).json

const callsMade = () => platform.calls.map((seen) => seen.call)
const synced = () => platform.variables.filter(({ key }) => key === variable)

/** The configuration in a variable's value, without its sync record; any other value unchanged. */
const configIn = (value: string): unknown => {
  const text = Buffer.from(value, "base64").toString()
  if (!text.startsWith("{")) return value
  const { host: _mark, ...config }: Record<string, unknown> = JSON.parse(text)
  return config
}

/** Asserts that no reply, log line or export contains the platform's token. */
const nothingLeaks = async (...answers: ReadonlyArray<Answer>) => {
  const shown = [
    ...answers.flatMap(({ headers, text }) => [text, JSON.stringify([...headers])]),
    ...lines,
    (await call("GET", "/admin/host/config")).text,
    (await call("GET", "/admin/host/status")).text,
    (await call("GET", "/admin/config")).text,
    (await call("GET", "/admin/config/export")).text
  ]
  for (const text of shown) assert.notInclude(text, platform.token)
}

describe("a sync to the hosting platform", () => {
  it("writes the configuration to the platform, starts a deployment and records both", async () => {
    const before = Math.floor(Date.now() / 1000)
    const answer = await sync({ ...credentials(), team_id: "team_1" })
    assert.deepStrictEqual([answer.status, answer.json], [200, {
      success: true,
      validated_accounts: 2,
      failed_accounts: [],
      message: "The configuration was synced and a deployment was started",
      deployment_url: "https://my-gateway-1.example",
      saved_credentials: ["host_token", "project_id", "team_id"],
      config_writable: false,
      needs_host_sync: false
    }])
    const { config } = await exported()
    const [written] = synced()
    const sent: Record<string, unknown> = JSON.parse(Buffer.from(written!.value, "base64").toString())
    const { host: mark, ...rest } = sent
    assert.deepStrictEqual(rest, config)
    const { last_sync_time, last_synced_hash } = await status()
    assert.deepStrictEqual(mark, { last_synced_hash, last_sync_time })
    assert.deepInclude(written, { type: "encrypted", target: ["production", "preview"] })
    assert.deepStrictEqual(callsMade(), ["list", "add", "project", "deploy"])
    for (const { authorization, url } of platform.calls) {
      assert.strictEqual(authorization, `Bearer ${platform.token}`)
      assert.strictEqual(url.searchParams.get("teamId"), "team_1")
    }
    assert.deepStrictEqual(platform.deployments, [{
      name: "my-gateway",
      project: platform.projectId,
      target: "production",
      gitSource: { type: "github", repoId: 4711, ref: "release" }
    }])
    const now = await status()
    assert.deepInclude(now, { synced: true, has_synced_before: true, draft_differs: false, env_backed: false })
    assert.match(String(now["config_hash"]), /^[0-9a-f]{64}$/)
    assert.strictEqual(now["last_synced_hash"], now["config_hash"])
    assert.isAtLeast(Number(now["last_sync_time"]), before)
    assert.deepStrictEqual((await call("GET", "/admin/host/config")).json, {
      has_token: true,
      project_id: platform.projectId,
      team_id: "team_1"
    })
    await nothingLeaks(answer)
  })

  it("writes the secrets of credentials, which exports do not show", async () => {
    const credential = { from: "entra", tenant: "t", client: "c", secret: "secret-of-a-client" }
    await Effect.runPromise(
      storeOf(gateway).update((raw) =>
        Effect.succeed({
          ...raw,
          upstreams: { one: { driver: "openai", base_url: "http://127.0.0.1:9/v1", models: { m: "m" } } },
          accounts: [{ upstream: "one", credential }]
        })
      )
    )
    const answer = await sync({ ...credentials(), auto_validate: false })
    assert.strictEqual(answer.status, 200, answer.text)
    assert.deepInclude(configIn(synced()[0]!.value), { accounts: [{ upstream: "one", credential }] })
    assert.deepInclude((await exported())["config"], {
      accounts: [{ upstream: "one", credential: { ...credential, secret: "***" } }]
    })
    assert.strictEqual((await status())["synced"], true)
  })

  it("changes only the variable of the production target", async () => {
    platform.variables.push(
      { id: "e1", key: "OTHER", value: "other", type: "plain", target: ["production"] },
      { id: "e2", key: variable, value: "preview", type: "encrypted", target: ["preview"] },
      { id: "e3", key: variable, value: "old", type: "encrypted", target: "production" }
    )
    assert.strictEqual((await sync()).status, 200)
    assert.deepStrictEqual(callsMade(), ["list", "change", "project", "deploy"])
    const { config } = await exported()
    assert.deepStrictEqual(platform.variables.map(({ value }) => configIn(value)), ["other", "preview", config])
  })

  it("keeps the value of the preview target if production has none", async () => {
    platform.variables.push({ id: "e1", key: variable, value: "preview", type: "encrypted", target: ["preview"] })
    await sync()
    assert.deepStrictEqual(synced().map(({ target }) => target), [["preview"], ["production"]])
    assert.strictEqual(synced()[0]?.value, "preview")
  })

  it("names the linked repository in its provider's form; without a repository it starts no deployment", async () => {
    const links: ReadonlyArray<readonly [Record<string, unknown>, Record<string, unknown>]> = [
      [{ type: "github", repoId: 1 }, { type: "github", repoId: 1, ref: "main" }],
      [{ type: "gitlab", projectId: "7", productionBranch: "go" }, { type: "gitlab", projectId: "7", ref: "go" }],
      [{ type: "bitbucket", uuid: "{u}", workspaceUuid: "{w}" }, {
        type: "bitbucket",
        repoUuid: "{u}",
        workspaceUuid: "{w}",
        ref: "main"
      }]
    ]
    for (const [link, gitSource] of links) {
      platform.link = link
      assert.strictEqual((await sync()).status, 200)
      assert.deepStrictEqual(platform.deployments.at(-1)?.["gitSource"], gitSource)
    }
    for (const link of [null, {}, { type: "gitlab" }]) {
      platform.link = link
      platform.deployments.length = 0
      const answer = await sync()
      assert.deepInclude(answer.json, { success: true, manual_deploy_required: true })
      assert.notProperty(answer.json, "deployment_url")
      assert.include(String(answer.json["message"]), "deploy it yourself")
      assert.deepStrictEqual(platform.deployments, [])
      assert.isTrue((await status())["synced"])
    }
  })

  it("tests the accounts unless auto_validate is off, and proceeds whatever the result", async () => {
    const refused = [...accounts, { token: "a-token" }]
    await gateway.stop()
    // No server listens there, so that every account test fails.
    gateway = await startGateway({
      accounts: refused,
      upstream: { driver: "session", base_url: "http://127.0.0.1:9" }
    }, { environment: { HOST_API_URL: platform.url } })
    const answer = await sync()
    assert.deepInclude(answer.json, { success: true, validated_accounts: 0 })
    const failed = answer.json["failed_accounts"] as ReadonlyArray<string>
    assert.deepStrictEqual(failed.slice(0, 2), ["a@example.com", "b@example.com"])
    assert.match(failed[2]!, /^token:/)
    assert.include(String(answer.json["message"]), "3 accounts failed their test")
    const untested = await sync({ ...credentials(), auto_validate: false })
    assert.deepInclude(untested.json, { success: true, validated_accounts: 0, failed_accounts: [] })
  })

  it("takes missing credentials from the environment, then from the saved ones", async () => {
    await restart({ HOST_TOKEN: platform.token, HOST_PROJECT_ID: platform.projectId, HOST_TEAM_ID: "env_team" })
    for (const host_token of ["__USE_PRECONFIG__", "", undefined]) {
      const answer = await sync({ host_token, project_id: "", team_id: null })
      assert.strictEqual(answer.status, 200)
      assert.deepStrictEqual(answer.json["saved_credentials"], [])
    }
    assert.strictEqual(platform.calls.at(-1)?.url.searchParams.get("teamId"), "env_team")
    assert.deepStrictEqual((await call("GET", "/admin/host/config")).json, {
      has_token: true,
      project_id: platform.projectId,
      team_id: "env_team"
    })
    await nothingLeaks()

    await restart({})
    const given = { ...credentials(), team_id: "team_1" }
    assert.deepStrictEqual((await sync({ ...given, save_credentials: false })).json["saved_credentials"], [])
    assert.strictEqual((await call("POST", "/admin/host/sync")).status, 400)
    assert.strictEqual((await sync(given)).status, 200)
    assert.strictEqual((await call("POST", "/admin/host/sync")).status, 200)
    assert.strictEqual(platform.calls.at(-1)?.url.searchParams.get("teamId"), "team_1")
    // The saved team belongs to the saved project.
    await sync({ project_id: "another" })
    assert.isNull(platform.calls.at(-1)?.url.searchParams.get("teamId"))
  })

  it("is rejected without a token, a project or a platform, and names the missing value", async () => {
    const none = await call("POST", "/admin/host/sync")
    assert.deepStrictEqual([none.status, none.detail], [
      400,
      "host_token is required: neither the request, nor HOST_TOKEN, nor an earlier sync gives one"
    ])
    const half = await sync({ host_token: platform.token })
    assert.match(half.detail, /^project_id is required.*HOST_PROJECT_ID/)
    assert.deepStrictEqual((await call("GET", "/admin/host/config")).json, {
      has_token: false,
      project_id: "",
      team_id: null
    })
    await gateway.stop()
    gateway = await startGateway({})
    const nowhere = await sync()
    assert.deepStrictEqual([nowhere.status, nowhere.detail], [
      400,
      "HOST_API_URL is not set: there is no platform to sync to"
    ])
    assert.strictEqual((await sync({ auto_validate: "yes" })).status, 400)
    assert.deepStrictEqual(platform.calls, [])
  })

  it("rejects a project or token that a request cannot carry, without a call to the platform", async () => {
    for (const project_id of [".", "..", "\ud800"]) {
      const answer = await sync({ ...credentials(), project_id })
      assert.deepStrictEqual([answer.status, answer.detail], [400, "project_id must be a project's id or name"])
    }
    for (const host_token of ["to\nken", "ключ"]) {
      const answer = await sync({ ...credentials(), host_token })
      assert.deepStrictEqual([answer.status, answer.detail], [
        400,
        "host_token has characters that no header can carry"
      ])
    }
    assert.deepStrictEqual(platform.calls, [])
  })

  it("requires an operator", async () => {
    for (const [method, to] of [["GET", "config"], ["POST", "sync"], ["GET", "status"], ["POST", "status"]] as const) {
      assert.strictEqual((await call(method, `/admin/host/${to}`, { bearer: businessKey })).status, 401)
    }
    assert.deepStrictEqual(platform.calls, [])
  })

  it("runs once at a time", async () => {
    const answers = await Promise.all([sync(), sync(), sync()])
    const statuses = answers.map((answer) => answer.status).sort()
    assert.deepStrictEqual([statuses[0], statuses.at(-1)], [200, 409])
    assert.strictEqual(platform.deployments.length, statuses.filter((each) => each === 200).length)
  })
})

interface Interruption {
  readonly call: PlatformCall
  readonly step: string
  readonly completed: ReadonlyArray<string>
}

const interruptions: ReadonlyArray<Interruption> = [
  { call: "list", step: "list_variables", completed: [] },
  { call: "add", step: "write_config", completed: ["list_variables", "validate_accounts"] },
  { call: "project", step: "read_project", completed: ["list_variables", "validate_accounts", "write_config"] },
  {
    call: "deploy",
    step: "start_deployment",
    completed: ["list_variables", "validate_accounts", "write_config", "read_project"]
  }
]

const faults: ReadonlyArray<readonly [string, PlatformFault, number, RegExp]> = [
  ["refuses", { status: 403, body: { error: { code: "forbidden", message: "Not yours." } } }, 403, /: Not yours\. /],
  ["is limited", { status: 429, body: { message: "Slow down" } }, 429, /: Slow down\. /],
  ["fails", { status: 500, body: "<html><title>Oops</title></html>" }, 500, /: the platform answers with HTTP 500\. /],
  ["breaks the connection before it acts", { reset: "before" }, 503, /: the platform cannot be reached/],
  ["breaks the connection after it acted", { reset: "after" }, 503, /: the platform cannot be reached/],
  ["redirects", { status: 302, headers: { location: "http://127.0.0.1:9/elsewhere" } }, 503, /HTTP 302\. /],
  ["answers nonsense", { status: 200, body: "nonsense" }, 503, /answer is not understood/]
]

describe("a failed sync to the hosting platform", () => {
  for (const { call: kind, completed, step } of interruptions) {
    it(`at ${step} reports the completed steps, and the next sync succeeds`, async () => {
      for (const [name, fault, expected, words] of faults) {
        const earlier = platform.deployments.length
        platform.variables.length = 0
        platform.fail(kind, fault)
        const broken = await sync()
        assert.strictEqual(broken.status, expected, `${step} ${name}`)
        assert.deepInclude(broken.json, { failed_step: step, completed_steps: completed }, name)
        assert.match(broken.detail, words, name)
        assert.match(broken.detail, completed.length === 0 ? /Nothing was done before it\./ : /Done before it: /)
        if (completed.includes("write_config")) assert.include(broken.detail, `${variable} was written`)
        const uncertain = step === "write_config" || step === "start_deployment"
        const refused = "status" in fault && fault.status !== 200
        assert.strictEqual(broken.detail.includes("may have happened"), uncertain && !refused, name)
        assert.isFalse((await status())["synced"], name)
        await nothingLeaks(broken)

        const mended = await sync()
        assert.strictEqual(mended.status, 200, name)
        assert.isTrue((await status())["synced"], name)
        assert.deepStrictEqual(synced().map(({ value }) => configIn(value)), [(await exported())["config"]], name)
        assert.isAbove(platform.deployments.length, earlier)
        await run(storeOf(gateway).update((raw) => Effect.succeed({ ...raw, host: {} })))
      }
    })
  }

  it("never shows a wrong token, although the platform's reply repeats it", async () => {
    const wrong = "a-wrong-platform-token-987"
    const answer = await sync({ ...credentials(), host_token: wrong })
    assert.strictEqual(answer.status, 403)
    assert.include(answer.detail, "Not authorized")
    assert.notInclude(answer.text, wrong)
    for (const line of lines) assert.notInclude(line, wrong)
    assert.isFalse((await call("GET", "/admin/host/config")).json["has_token"])
    const unknown = await sync({ ...credentials(), project_id: "../../v1/secrets?x=" })
    assert.deepStrictEqual([unknown.status, unknown.json["failed_step"]], [404, "list_variables"])
    assert.strictEqual(platform.calls.at(-1)?.url.pathname, "/v9/projects/..%2F..%2Fv1%2Fsecrets%3Fx%3D/env")
  })

  it("says that the deployment was started if the sync cannot be recorded", async () => {
    const folder = mkdtempSync(path.join(tmpdir(), "host-"))
    const file = path.join(folder, "config.json")
    const store = (environment: Partial<Environment["Service"]>) =>
      ConfigStore.layer.pipe(Layer.provide(Layer.effect(
        Environment,
        Effect.map(Environment.make, (read) => ({
          ...read,
          configPath: file,
          adminKey: Redacted.make(adminKey),
          ...environment
        }))
      )))
    try {
      await restart({}, { store: store({}) })
      await call("POST", "/admin/keys", { body: { key: "k1" } })
      const first = await sync()
      assert.deepInclude(first.json, { success: true, config_writable: true })
      assert.deepInclude(JSON.parse(readFileSync(file, "utf8")).host, { token: platform.token })
      // An invalid edit of the file blocks the next save.
      writeFileSync(file, "{ not JSON")
      const broken = await sync()
      assert.strictEqual(broken.status, 409)
      assert.strictEqual(broken.json["failed_step"], "record_sync")
      assert.match(broken.detail, /^The sync could not be recorded here: .*a deployment was started/)
      await nothingLeaks(broken)
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})

const run = Effect.runPromise

describe("the status of the sync", () => {
  it("compares the configuration in effect, or a draft, with the last synced one", async () => {
    const fresh = await status()
    assert.deepInclude(fresh, {
      synced: false,
      has_synced_before: false,
      last_sync_time: 0,
      last_synced_hash: "",
      draft_differs: true
    })
    assert.strictEqual(fresh["draft_hash"], fresh["config_hash"])
    await sync()
    const draft = { ...(await exported())["config"] as Record<string, unknown> }
    const compare = async (config_override: unknown) =>
      (await call("POST", "/admin/host/status", { body: { config_override } })).json
    assert.deepStrictEqual((await call("POST", "/admin/host/status")).json, await status())
    assert.deepInclude(await compare(null), { synced: true, draft_differs: false })
    const reordered = Object.fromEntries(Object.entries(draft).reverse())
    assert.deepInclude(await compare({ ...reordered, host: { token: "x" } }), { synced: true, draft_differs: false })
    const changed = await compare({ ...draft, keys: ["another"] })
    assert.deepInclude(changed, { synced: true, draft_differs: true })
    assert.notStrictEqual(changed["draft_hash"], changed["config_hash"])
    for (const wrong of ["text", 5, []]) {
      const answer = await call("POST", "/admin/host/status", { body: { config_override: wrong } })
      assert.deepStrictEqual([answer.status, answer.detail], [400, "config_override must be a JSON object"])
    }

    await call("POST", "/admin/keys", { body: { key: "one-more" } })
    const later = await status()
    assert.deepInclude(later, { synced: false, has_synced_before: true, draft_differs: true })
    assert.notStrictEqual(later["config_hash"], later["last_synced_hash"])
    await call("DELETE", "/admin/keys/one-more")
    assert.isTrue((await status())["synced"])
  })

  /** A store whose source is the variable. */
  const deployed = (folder: string, value: string) =>
    ConfigStore.layer.pipe(Layer.provide(Layer.effect(
      Environment,
      Effect.map(Environment.make, (read) => ({
        ...read,
        configPath: path.join(folder, "config.json"),
        configJson: Redacted.make(value),
        adminKey: Redacted.make(adminKey)
      }))
    )))

  it("is correct in the instance that is deployed from the synced configuration", async () => {
    const folder = mkdtempSync(path.join(tmpdir(), "host-"))
    try {
      await sync()
      const { config_hash, last_sync_time } = await status()
      await restart({}, { store: deployed(folder, synced()[0]!.value) })
      assert.deepInclude(await status(), {
        synced: true,
        has_synced_before: true,
        env_backed: true,
        config_hash,
        last_synced_hash: config_hash,
        last_sync_time
      })
      assert.isFalse((await call("GET", "/admin/settings")).json["needs_host_sync"])
      await call("POST", "/admin/keys", { body: { key: "later" } })
      assert.deepInclude(await status(), { synced: false, has_synced_before: true })
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it("agrees with needs_host_sync of the settings if the environment is the source", async () => {
    const folder = mkdtempSync(path.join(tmpdir(), "host-"))
    try {
      const store = deployed(folder, JSON.stringify({ keys: [businessKey], compat: { strip_reference_markers: true } }))
      await restart({}, { store })
      assert.isTrue((await status())["env_backed"])
      // A change without effect, a reverted change, and the check of a password need no sync.
      for (
        const body of [{}, { compat: { strip_reference_markers: true } }, { runtime: { account_max_queue: null } }]
      ) {
        assert.deepInclude((await call("PUT", "/admin/settings", { body })).json, { needs_host_sync: false })
      }
      await call("POST", "/admin/keys", { body: { key: "taken-back" } })
      assert.deepInclude((await call("DELETE", "/admin/keys/taken-back")).json, { needs_host_sync: false })
      const added = await call("POST", "/admin/keys", { body: { key: "new" } })
      assert.deepInclude(added.json, { needs_host_sync: true, config_writable: false })
      assert.deepInclude((await sync()).json, { needs_host_sync: false })
      assert.isFalse((await call("GET", "/admin/settings")).json["needs_host_sync"])
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})

describe("a sync's call to the platform", () => {
  const testLayer = (client: HttpClient.HttpClient) =>
    HostSync.layer.pipe(
      Layer.provide(Layer.mock(AccountTests)({})),
      Layer.provideMerge(transferJson()),
      Layer.provide(Layer.succeed(HttpClient.HttpClient, client)),
      Layer.provide(Layer.succeed(AdminEnvironment, {
        hosting: { token: Redacted.make("t".repeat(20)), projectId: "p", teamId: undefined, apiUrl: "http://platform" },
        releasesUrl: undefined
      }))
    )

  it.effect("times out after 30 seconds", () =>
    Effect.gen(function*() {
      const hosting = yield* HostSync
      const syncing = yield* Effect.forkChild(Effect.flip(hosting.sync({}, "r1")))
      yield* TestClock.adjust("29 seconds")
      assert.isUndefined(syncing.pollUnsafe())
      yield* TestClock.adjust("1 second")
      const failure = yield* Fiber.join(syncing)
      assert.instanceOf(failure, HostSyncFailure)
      assert.deepInclude(failure, { status: 503, step: "list_variables" })
      assert.include(failure.message, "no answer within 30 seconds")
    }).pipe(Effect.provide(testLayer(HttpClient.make(() => Effect.never)))))

  it.effect("is interrupted when the operator disconnects, with a log line of the completed steps", () => {
    const logged: Array<string> = []
    const keep = Logger.make<unknown, void>(({ message }) => {
      logged.push(String(message))
    })
    return Effect.gen(function*() {
      const hosting = yield* HostSync
      const syncing = yield* Effect.forkChild(hosting.sync({}, "r1"))
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(syncing)
      assert.deepStrictEqual(logged, [
        "A sync to the hosting platform was left at list_variables. Nothing was done before it."
      ])
      const second = yield* Effect.forkChild(hosting.sync({}, "r2"))
      yield* TestClock.adjust("30 seconds")
      yield* Fiber.await(second)
    }).pipe(Effect.provide(Layer.merge(testLayer(HttpClient.make(() => Effect.never)), Logger.layer([keep]))))
  })
})
