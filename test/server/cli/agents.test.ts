/** `run` and `connect`: agents that are connected to a gateway. Small programs stand for the agents, and show how they were started. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { agents, connectedNames, type Connection, setupLines } from "../../../src/server/cli/agents/clients.ts"
import { businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"
import { run, start } from "./process.ts"

let gateway: RunningGateway
let root: string
beforeAll(async () => {
  root = mkdtempSync(path.join(tmpdir(), "agents-"))
  for (const folder of ["bin", "home", "tmp"]) mkdirSync(path.join(root, folder))
  gateway = await startGateway({})
})
afterAll(async () => {
  await gateway.stop()
  rmSync(root, { recursive: true, force: true })
})

/** Puts a program of that name into the only folder of `PATH`. */
const program = (name: string, script: string) => {
  const at = path.join(root, "bin", name)
  writeFileSync(at, `#!${process.execPath}\n${script}`)
  chmodSync(at, 0o755)
}

/** Shows arguments, environment and the files that they name. */
const shows = `
const { readFileSync, statSync } = require("node:fs")
const { dirname } = require("node:path")
const own = [...process.argv, ...Object.values(process.env)].flatMap((text) => text.match(/\\/[^"= ]*\\.json/) ?? [])
const files = Object.fromEntries(own.filter((at) => at.includes(".model-gateway-")).map((at) => [at, {
  text: readFileSync(at, "utf8"), mode: statSync(at).mode & 0o777, folder: statSync(dirname(at)).mode & 0o777
}]))
if (process.argv.includes("--bundled")) {
  console.log(JSON.stringify({ models: [
    { slug: "lite", base_instructions: "Lite", use_responses_lite: true },
    { slug: "vendor", base_instructions: "Be codex", tool_mode: "x", multi_agent_version: 2, shell_type: "default", default_reasoning_level: "high" }
  ] }))
} else console.log(JSON.stringify({ args: process.argv.slice(2), env: process.env, files }))
process.exitCode = 7
if (process.argv.includes("--bundled")) process.exitCode = 0
`

interface Shown {
  readonly args: ReadonlyArray<string>
  readonly env: Readonly<Record<string, string>>
  readonly files: Readonly<Record<string, { readonly text: string; readonly mode: number; readonly folder: number }>>
}

const environment = () => ({
  PATH: path.join(root, "bin"),
  HOME: path.join(root, "home"),
  TMPDIR: path.join(root, "tmp"),
  GATEWAY_URL: gateway.url,
  GATEWAY_KEY: businessKey,
  GATEWAY_CONFIG_PATH: path.join(root, "absent.json")
})

const runs = async (...args: ReadonlyArray<string>) => {
  const { code, stderr, stdout } = await run(["run", ...args], { env: environment() })
  return { code, stderr, shown: (stdout === "" ? undefined : JSON.parse(stdout)) as Shown }
}

const fileIn = ({ files }: Shown): { readonly [name: string]: unknown } =>
  JSON.parse(Object.values(files)[0]?.text ?? "{}")

describe("run", () => {
  it("starts each agent connected, passes its exit code on, and leaves no file behind", async () => {
    for (const { program: name } of Object.values(agents)) program(name, shows)
    const [claude, codex, gemini, opencode, qwen] = await Promise.all([
      runs("--model", "upstream-chat", "claude", "--", "-p", "Hi"),
      runs("--model", "upstream-reasoner", "codex", "--", "exec", "Hi", "-c", "model=mine"),
      runs("gemini", "--", "-p", "Hi"),
      runs("opencode"),
      runs("qwen", "--", "-p", "Hi")
    ])
    for (const { code, shown, stderr } of [claude, codex, gemini, opencode, qwen]) {
      assert.deepStrictEqual([code, stderr], [7, ""])
      assert.notInclude(shown.args.join(" "), businessKey)
      for (const { folder, mode } of Object.values(shown.files)) assert.deepStrictEqual([mode, folder], [0o600, 0o700])
    }
    assert.isEmpty(readdirSync(path.join(root, "tmp")))
    assert.isEmpty(readdirSync(path.join(root, "home")))

    assert.deepStrictEqual(claude.shown.args.slice(2), ["-p", "Hi"])
    assert.strictEqual(claude.shown.args[0], "--settings")
    assert.deepInclude(fileIn(claude.shown)["env"] as object, {
      ANTHROPIC_BASE_URL: gateway.url,
      ANTHROPIC_AUTH_TOKEN: businessKey,
      ANTHROPIC_MODEL: "upstream-chat",
      CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY: "1",
      ENABLE_TOOL_SEARCH: "true"
    })

    assert.include(codex.shown.args.join(" "), `model="upstream-reasoner"`)
    assert.include(codex.shown.args.join(" "), `model_providers.gateway.base_url="${gateway.url}/v1"`)
    assert.deepStrictEqual(codex.shown.args.slice(-4), ["exec", "Hi", "-c", "model=mine"])
    assert.strictEqual(codex.shown.env["GATEWAY_KEY"], businessKey)
    const catalog = fileIn(codex.shown)["models"] as ReadonlyArray<Record<string, unknown>>
    assert.includeMembers(catalog.map(({ slug }) => slug), ["upstream-chat", "upstream-reasoner"])
    for (const entry of catalog) {
      assert.deepInclude(entry, { base_instructions: "Be codex", shell_type: "default", visibility: "list" })
      assert.doesNotHaveAnyKeys(entry, ["use_responses_lite", "tool_mode", "multi_agent_version"])
    }

    assert.deepStrictEqual(gemini.shown.args, ["-p", "Hi"])
    assert.deepInclude(gemini.shown.env, { GOOGLE_GEMINI_BASE_URL: gateway.url, GEMINI_API_KEY: businessKey })
    assert.match(gemini.shown.env["GEMINI_CLI_CUSTOM_HEADERS"] ?? "", /^x-gateway-session: [\w-]{36}$/)
    assert.deepStrictEqual<object>(fileIn(gemini.shown), { security: { auth: { selectedType: "gemini-api-key" } } })

    const config = JSON.parse(opencode.shown.env["OPENCODE_CONFIG_CONTENT"] ?? "")
    assert.strictEqual(config.provider.gateway.options.baseURL, `${gateway.url}/v1`)
    assert.containsAllKeys(config.provider.gateway.models, ["upstream-chat"])
    assert.notInclude(opencode.shown.env["OPENCODE_CONFIG_CONTENT"], businessKey)

    assert.deepStrictEqual(qwen.shown.args, ["--auth-type", "openai", "-p", "Hi"])
    assert.deepInclude(qwen.shown.env, { OPENAI_BASE_URL: `${gateway.url}/v1`, OPENAI_API_KEY: businessKey })
  })

  it("keeps the user's own login beside the gateway's key", async () => {
    program("claude", shows)
    const { shown } = await runs("--own-login", "claude")
    const env = fileIn(shown)["env"] as object
    assert.deepInclude(env, { ANTHROPIC_CUSTOM_HEADERS: `x-gateway-key: ${businessKey}` })
    assert.doesNotHaveAnyKeys(env, ["ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_MODEL"])
  })

  it("says in one line why nothing is started", async () => {
    rmSync(path.join(root, "bin", "qwen"), { force: true })
    program("gemini", `require("node:fs").writeFileSync(${JSON.stringify(path.join(root, "started"))}, "")`)
    const cases: ReadonlyArray<readonly [args: ReadonlyArray<string>, env: object, reason: RegExp]> = [
      [["qwen"], {}, /^qwen is not installed: PATH has no such program$/],
      [
        ["gemini"],
        { GATEWAY_URL: "http://127.0.0.1:1" },
        /^The gateway http:\/\/127\.0\.0\.1:1 cannot be reached \(.+\)$/
      ],
      [["--gateway", "ftp://host", "gemini"], {}, /^ftp:\/\/host is not an http or https URL$/],
      [["qwen", "-p", "Hi"], {}, /^put the agent's arguments after --: model-gateway run qwen -- -p …$/],
      [["--model", "absent", "gemini"], {}, /^The gateway has no model "absent" for this key$/],
      [["gemini"], { GATEWAY_KEY: "" }, /^There is no key: /],
      [["--key-file", path.join(root, "no-key"), "gemini"], {}, /no-key/]
    ]
    for (const [args, env, reason] of cases) {
      const { code, stderr } = await run(["run", ...args], { env: { ...environment(), ...env } })
      assert.strictEqual(code, 1, stderr)
      assert.match(stderr.trimEnd(), reason)
    }
    assert.isFalse(existsSync(path.join(root, "started")))
  })

  it("takes the only key of the configuration file, and passes signals on", async () => {
    const configured = path.join(root, "config.json")
    writeFileSync(configured, JSON.stringify({ keys: [businessKey] }))
    program(
      "gemini",
      `process.on("SIGTERM", () => { console.log("told to end"); process.exit(3) })
       process.stdin.resume()
       console.log("key " + process.env.GEMINI_API_KEY + " settings " + process.env.GEMINI_CLI_SYSTEM_SETTINGS_PATH + ";")`
    )
    const env = { ...environment(), GATEWAY_KEY: "", GATEWAY_CONFIG_PATH: configured }
    const running = start(["run", "gemini"], env)
    const [, key, settings] = await running.printed(/key (\S+) settings (\S+);/)
    assert.strictEqual(key, businessKey)
    assert.isTrue(existsSync(settings!))
    running.child.kill("SIGTERM")
    const { code, stdout } = await running.ended
    assert.deepStrictEqual([code, stdout.includes("told to end")], [3, true])
    assert.isFalse(existsSync(path.dirname(settings!)))
  })
})

const model = {
  id: "small",
  window: 8_192,
  maxOutput: 1_024,
  efforts: ["low", "high"],
  input: ["text", "image", "pdf"]
}
const connection: Connection = {
  url: "http://gateway",
  key: "k",
  models: [{ id: "claude-x" }, model, { id: "large", window: 100_000 }],
  model: undefined,
  ownLogin: false,
  session: "s",
  fileAt: (name) => `/tmp/${name}`
}

describe("connect", () => {
  it("prints the lines of a permanent setup, and the key only where it is asked for", async () => {
    const { code, stdout } = await run(["connect", "codex"], { env: environment() })
    assert.strictEqual(code, 0)
    assert.include(stdout, `base_url = "${gateway.url}/v1"`)
    assert.include(stdout, "YOUR_KEY")
    assert.notInclude(stdout, businessKey)
    const shown = await run(["connect", "--show-key", "pi"], { env: environment() })
    assert.include(shown.stdout, businessKey)
    assert.strictEqual(readFileSync(path.join(root, "config.json"), "utf8"), JSON.stringify({ keys: [businessKey] }))
  })

  it("has lines for every agent that it knows", () => {
    for (const name of connectedNames) {
      const lines = setupLines(name, { ...connection, key: "the-key" })
      assert.include(lines, connection.url)
      assert.include(lines, "the-key")
    }
  })

  it("prints names, keys and addresses that a shell takes as text", () => {
    const made = path.join(root, "made")
    const hostile = `$(touch ${made})\`touch ${made}\`'; touch ${made}; '\\"`
    const given = { ...connection, url: `http://gateway/${hostile}`, key: hostile, model: { id: hostile } }
    for (const name of ["claude", "gemini", "qwen"] as const) {
      for (const ownLogin of [true, false]) {
        const lines = setupLines(name, { ...given, ownLogin })
        const { stdout } = spawnSync("sh", ["-c", `eval "$LINES_OF_SETUP"; env -0`], {
          encoding: "utf8",
          env: { PATH: "/usr/bin:/bin", LINES_OF_SETUP: lines }
        })
        const values = stdout.split("\0").map((line) => line.slice(line.indexOf("=") + 1))
        assert.include(values, hostile, name)
        assert.isTrue(values.some((value) => value.startsWith(given.url)), name)
        assert.isTrue(values.some((value) => value.endsWith(given.key) && value !== given.url), name)
      }
    }
    const comment = setupLines("codex", given).split("\n")[0]!
    const [, command] = comment.split("the key: ")
    spawnSync("sh", ["-c", command!])
    assert.isFalse(existsSync(made))
  })

  it("prints no control characters, whatever a server, a key or an address has", () => {
    const hostile = "a\u001b[2J\n\r\u009b\u202e\u2028b"
    const given = {
      ...connection,
      key: hostile,
      url: `http://gateway/${hostile}`,
      model: { id: hostile, name: hostile }
    }
    for (const name of connectedNames) {
      for (const line of setupLines(name, { ...given, models: [given.model] }).split("\n")) {
        assert.notMatch(line, /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u, name)
      }
    }
    assert.strictEqual(JSON.parse(setupLines("pi", given)).providers.gateway.apiKey, hostile)
  })

  it("chooses the first model whose name needs no quotes", async () => {
    for (const id of ["$(id)", "a b", "é", "{env:SECRET}"]) {
      const models = [{ id }, ...connection.models]
      for (const name of ["codex", "gemini", "qwen", "cline"] as const) {
        const lines = setupLines(name, { ...connection, models })
        assert.notInclude(lines, id)
        assert.include(lines, "claude-x")
      }
      assert.strictEqual(JSON.parse(setupLines("opencode", { ...connection, models })).model, "gateway/claude-x")
      assert.strictEqual(agents.qwen.start({ ...connection, models }).env["OPENAI_MODEL"], "claude-x")
      assert.include(setupLines("qwen", { ...connection, models: [{ id }] }), "OPENAI_MODEL=''")
    }
  })

  it("gives opencode the key alone to look up, and names of models as they are", () => {
    const models = [{ id: "{env:GATEWAY_KEY}" }, { id: "{file:/etc/passwd}" }]
    const text = agents.opencode.start({ ...connection, models }).env["OPENCODE_CONFIG_CONTENT"]!
    assert.deepStrictEqual(text.match(/\{(?:env|file):[^}]*\}/g), ["{env:GATEWAY_KEY}"])
    const { gateway: { models: named, options } } = JSON.parse(text).provider
    assert.strictEqual(options.apiKey, "{env:GATEWAY_KEY}")
    assert.deepStrictEqual(Object.keys(named), models.map(({ id }) => id))
  })

  it("tells windows where they are known", () => {
    const settings = JSON.parse(agents.claude.start(connection).files["settings.json"]!)
    assert.strictEqual(settings.env.CLAUDE_CODE_MAX_CONTEXT_TOKENS, "8192")
    const printed = { models: [{ base_instructions: "Be codex", default_reasoning_level: "medium" }] }
    const { models } = JSON.parse(agents.codex.startWith(connection, printed).files["models.json"]!)
    assert.deepInclude(models[1], {
      slug: "small",
      context_window: 8_192,
      input_modalities: ["text", "image"],
      default_reasoning_level: "low"
    })
    assert.doesNotHaveAnyKeys(models[0], ["context_window"])
    assert.deepInclude(JSON.parse(setupLines("opencode", connection)).provider.gateway.models.small, {
      limit: { context: 8_192, output: 1_024 }
    })
  })
})
