/**
 * The commands besides the service, as processes.
 */
import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { adminKey, startGateway } from "../../support/gateway.ts"
import { modelList, startOpenAiServer } from "../../support/openaiServer.ts"
import { parseFrames } from "../../support/sse.ts"
import { isSignedBy, startReceiver } from "../webhooks/receiver.ts"
import { runHere } from "./command.ts"
import { run, start } from "./process.ts"

const folder = () => mkdtempSync(path.join(tmpdir(), "cli-"))

const file = (name: string, content: unknown): string => {
  const at = path.join(folder(), name)
  writeFileSync(at, typeof content === "string" ? content : JSON.stringify(content))
  return at
}

const written = "Let me look.\n<tool_call>{\"name\":\"weather\",\"arguments\":{\"city\":\"Paris\"}}</tool_call>"

const eventsIn = (stdout: string) => stdout.trimEnd().split("\n").map((line): unknown => JSON.parse(line))

const sieved = [
  { _tag: "CallStarted", index: 0, id: "call_0", name: "weather" },
  { _tag: "CallArguments", index: 0, delta: "{\"city\":\"Paris\"}" },
  { _tag: "CallFinished", index: 0, id: "call_0", name: "weather", arguments: "{\"city\":\"Paris\"}" }
]

describe.concurrent("check-config", () => {
  it("prints every fault with its place, and fails", async () => {
    const at = file("config.json", {
      keys: ["good", 1],
      accounts: [{ email: "a@example.com", password: 7 }],
      runtime: { account_max_inflight: 0 },
      upstream: { driver: "session" }
    })
    const { code, stderr, stdout } = await run(["check-config", at])
    assert.deepEqual([code, stdout], [1, ""])
    assert.sameMembers(stderr.trimEnd().split("\n"), [
      `${at}: keys[1] must be a string`,
      `${at}: accounts[0].password must be a string`,
      `${at}: runtime.account_max_inflight must be between 1 and 256`,
      `${at}: upstream.base_url is required with the session driver`
    ])
  })

  it("asks the servers for their models with --online, and fails for what is wrong with --strict", async () => {
    const server = await startOpenAiServer()
    server.list(() => modelList("qwen3:14b"))
    const at = file("online.json", {
      keys: ["k"],
      accounts: [{ upstream: "gpu", token: "the-key" }],
      upstreams: {
        gpu: { driver: "openai", base_url: server.baseUrl, models: { small: "qwen3:8b" } },
        away: { driver: "openai", base_url: "http://127.0.0.1:1/v1" }
      }
    })
    const [plain, online, strict] = await Promise.all([
      runHere(["check-config", at]),
      run(["check-config", "--online", at]),
      runHere(["check-config", "--online", "--strict", at])
    ])
    const keys = server.lists.map(({ key }) => key)
    await server.stop()
    assert.deepEqual([plain.code, plain.stderr], [0, ""])
    assert.deepEqual(online.stderr.trimEnd().split("\n"), [
      `upstreams.gpu.models.small names "qwen3:8b", which the server does not list; did you mean "qwen3:14b"?`,
      "upstream away does not answer: the connection was refused"
    ])
    assert.deepEqual([online.code, strict.code], [0, 1])
    assert.deepEqual(keys, ["the-key", "the-key"])
  })

  it("fails with --online --strict where the only server is down, and names it", async () => {
    const at = file("down.json", { keys: ["k"], upstream: { driver: "openai", base_url: "http://127.0.0.1:1/v1" } })
    const [online, strict] = await Promise.all([
      runHere(["check-config", "--online", at]),
      runHere(["check-config", "--online", "--strict", at])
    ])
    assert.deepEqual([online.code, strict.code], [0, 1])
    const words = "upstream default does not answer: the connection was refused\n"
    assert.deepEqual([online.stderr, strict.stderr], [words, `${words}${at}: 1 warning, and --strict is set\n`])
  })

  it("says each warning once, with its place, also with --online", async () => {
    const at = file("priced.json", { keys: ["k"], prices: { "gpt-9": { input: 1 } } })
    const { code, stderr, stdout } = await runHere(["check-config", "--online", at])
    assert.deepEqual([code, stdout], [
      0,
      `${at}: valid (upstream default (embedded); 0 accounts, 1 key); 1 warning above, and --strict would fail\n`
    ])
    assert.match(stderr, /^\S+priced\.json: prices\.gpt-9 is a price of no known model [^\n]+\n$/)
  })

  it("refuses with --strict a named file that does not exist, and a short admin key", async () => {
    const at = path.join(folder(), "none.json")
    const checked = (variables: Record<string, string>) => runHere(["check-config", "--strict"], { env: variables })
    const [missing, short] = await Promise.all([
      checked({ GATEWAY_CONFIG_PATH: at }),
      checked({ GATEWAY_CONFIG_PATH: file("config.json", { keys: ["k"] }), GATEWAY_ADMIN_KEY: "short" })
    ])
    assert.deepEqual([missing.code, short.code], [1, 1])
    assert.include(missing.stderr, `GATEWAY_CONFIG_PATH names ${at}, which does not exist: `)
    assert.match(short.stderr, /^GATEWAY_ADMIN_KEY has fewer than 16 characters: /)
  })

  it("says where a file is no JSON, and that one is missing", async () => {
    const broken = file("config.json", "{\n  \"keys\": [,]\n}")
    const [syntax, missing] = await Promise.all([
      runHere(["check-config", broken]),
      runHere(["check-config", path.join(folder(), "none.json")])
    ])
    assert.strictEqual(syntax.code, 1)
    assert.match(syntax.stderr, /^\S+: the configuration is not valid JSON.*\n$/)
    assert.strictEqual(missing.code, 1)
    assert.match(missing.stderr, /^\S+none\.json: there is no such file\n$/)
  })

  it("checks what the environment names, and shows no secret of it", async () => {
    const { code, stdout } = await runHere(["check-config"], {
      env: { GATEWAY_CONFIG_JSON: JSON.stringify({ keys: ["a-secret-key"], accounts: [{ token: "a-secret-token" }] }) }
    })
    assert.strictEqual(code, 0)
    assert.strictEqual(stdout, "GATEWAY_CONFIG_JSON: valid (upstream default (embedded); 1 account, 1 key)\n")
  })
})

describe.concurrent("prices import", () => {
  it.skipIf(process.platform === "win32")("reads regular files only: a device has no end", async () => {
    const config = file("config.json", { keys: ["k"] })
    const { code, stderr } = await runHere(["prices", "import", "/dev/zero"], { env: { GATEWAY_CONFIG_PATH: config } })
    assert.deepEqual([code, stderr], [1, "/dev/zero is not a regular file\n"])
    const missing = await runHere(["prices", "import", "/none.json"], { env: { GATEWAY_CONFIG_PATH: config } })
    assert.deepEqual([missing.code, missing.stderr], [1, "/none.json: there is no such file\n"])
  })

  it("writes exact prices per million tokens into the configuration file, and leaves the rest as it is", async () => {
    const config = file("config.json", {
      keys: ["k"],
      "x-mine": [1],
      prices: { "GPT-4O": { input: 9 }, own: { input: 1 } }
    })
    const prices = file(
      "prices.json",
      `{
        "sample_spec": { "input_cost_per_token": 0.0, "output_cost_per_token": 0.0 },
        "gpt-4o": { "input_cost_per_token": 2.5e-06, "cache_read_input_token_cost": 1.25e-06, "output_cost_per_token": 1e-05 },
        "tiny": { "input_cost_per_token": 1.5e-14, "mode": "embedding" },
        "rounded": { "output_cost_per_token": "1.2345678904999e-07" },
        "whisper": { "input_cost_per_second": 0.0001, "output_cost_per_second": 0, "input_cost_per_pixel": 1e-8 },
        "wrong": { "input_cost_per_token": -1, "output_cost_per_token": null },
        "region/*/model": { "input_cost_per_token": 1e-06 }
      }`
    )
    const env = { GATEWAY_CONFIG_PATH: config }
    const { code, stderr, stdout } = await run(["prices", "import", prices], { env })
    assert.deepEqual([code, stderr], [0, ""])
    assert.deepEqual(stdout.split("\n"), [
      "changed  gpt-4o: input 9 -> 2.5, cached_input none -> 1.25, output none -> 10",
      "new      tiny: input 0.000000015",
      "new      rounded: output 0.123456789",
      "new      whisper: per_second 0.0001",
      "without a place, with the number of entries: input_cost_per_pixel (1)",
      `${config}: 3 new, 1 changed, 0 unchanged; 2 without a price left out`,
      ""
    ])
    assert.deepEqual(JSON.parse(readFileSync(config, "utf8")), {
      keys: ["k"],
      "x-mine": [1],
      prices: {
        own: { input: 1 },
        "gpt-4o": { input: 2.5, cached_input: 1.25, output: 10 },
        tiny: { input: "0.000000015" },
        rounded: { output: 0.123456789 },
        whisper: { per_second: 0.0001 }
      }
    })
    const [none, elsewhere] = await Promise.all([
      runHere(["prices", "import", file("none.json", { whisper: { mode: "chat" } })], { env }),
      runHere(["prices", "import", prices], { env: { GATEWAY_CONFIG_JSON: "{}" } })
    ])
    assert.strictEqual(none.code, 1)
    assert.match(none.stderr, /none\.json has no prices\n$/)
    assert.deepEqual([elsewhere.code, elsewhere.stderr], [
      1,
      "The configuration is in GATEWAY_CONFIG_JSON, not in a file\n"
    ])
  })
})

describe.concurrent("prices check", () => {
  it("prints each target that lacks prices, and fails if there is one", async () => {
    const config = {
      upstreams: { gpu: { driver: "openai", base_url: "http://127.0.0.1:9/v1", models: { small: "s", large: "l" } } },
      routes: { fast: ["gpu/small"] }
    }
    const gaps = file("gaps.json", { ...config, prices: { "gpu/small": { output: 1 }, fast: { input: 1, output: 1 } } })
    const whole = file("whole.json", { ...config, prices: { "*": { input: 1, output: 1 } } })
    const [some, none] = await Promise.all([run(["prices", "check", gaps]), runHere(["prices", "check", whole])])
    assert.deepEqual([some.code, some.stdout, some.stderr], [
      1,
      "gpu/small: gpu/small lacks input\ngpu/large: no price\n",
      `${gaps}: 2 of 3 targets lack prices\n`
    ])
    assert.deepEqual([none.code, none.stdout], [0, `${whole}: every target has its prices\n`])
  })
})

describe.concurrent("prices check", () => {
  it("names the list price of a well-known model, unless it is switched off", async () => {
    const at = (prices: object) =>
      file("listed.json", {
        upstreams: { vendor: { driver: "openai", base_url: "http://127.0.0.1:9/v1", models: { "gpt-4o": "gpt-4o" } } },
        prices
      })
    const listed = await runHere(["prices", "check", at({})])
    assert.strictEqual(listed.code, 0)
    assert.match(listed.stdout, /^vendor\/gpt-4o: list price of 20\d\d-\d\d-\d\d\n/)
    const off = await runHere(["prices", "check", at({ list: false })])
    assert.deepEqual([off.code, off.stdout], [1, "vendor/gpt-4o: no price\n"])
    const own = await runHere(["prices", "check", at({ "vendor/*": { input: 1, output: 1 } })])
    assert.notInclude(own.stdout, "list price")
  })

  it("names the list price of a cloud's model where it is asked anywhere in the world, and none within a region", async () => {
    const [driver, vertex] = ["messages", { vendor: "vertex", project: "my-project" }]
    const sonnet = (model: string) => ({ driver, models: { sonnet: model } })
    const { stdout } = await runHere([
      "prices",
      "check",
      file("clouds.json", {
        upstreams: {
          runtime: {
            ...sonnet("global.anthropic.claude-sonnet-4-5-20250929-v1:0"),
            vendor: "bedrock-runtime",
            region: "eu-central-1"
          },
          geographic: {
            ...sonnet("eu.anthropic.claude-sonnet-4-5-20250929-v1:0"),
            vendor: "bedrock-runtime",
            region: "eu-central-1"
          },
          world: { ...sonnet("claude-sonnet-4-5@20250929"), ...vertex, region: "global" },
          regional: { ...sonnet("claude-sonnet-4-5@20250929"), ...vertex, region: "us-east5" }
        }
      })
    ])
    const found = new Map(stdout.split("\n").map((line) => line.split(": ") as [string, string]))
    assert.deepEqual(
      ["runtime", "geographic", "world", "regional"].map((name) =>
        found.get(`${name}/sonnet`)?.replace(/20\d\d-\d\d-\d\d/, "DATE")
      ),
      ["list price of DATE", "no price", "list price of DATE", "no price"]
    )
  })

  it("warns where the price of another name counts before that of the server's own name", async () => {
    const base_url = "http://127.0.0.1:9/v1"
    const upstreams = {
      cheap: { driver: "openai", base_url, models: { "gpt-4o": "llama-3", mine: "qwen", same: "llama-3" } }
    }
    const own = { "llama-3": { input: 1, output: 1 }, qwen: { input: 1, output: 1 } }
    const imported = { "gpt-4o": { input: 5, output: 9 }, fast: { input: 7, output: 7 }, same: { input: 1, output: 1 } }
    const at = (prices: object) => file("beaten.json", { upstreams, routes: { fast: ["cheap/mine"] }, prices })
    const warned = await runHere(["prices", "check", at({ ...own, ...imported })])
    assert.deepEqual([warned.code, warned.stdout.split("\n").slice(0, 2)], [0, [
      "warning: gpt-4o, cheap/gpt-4o: the price of gpt-4o counts before that of llama-3, the server's own name; set prices.cheap/gpt-4o to the one that is right",
      "warning: fast, cheap/mine: the price of fast counts before that of qwen, the server's own name; set prices.cheap/mine to the one that is right"
    ]])
    const meant = await runHere([
      "prices",
      "check",
      at({ ...own, "cheap/gpt-4o": imported["gpt-4o"], ...imported, fast: own.qwen })
    ])
    assert.notInclude(meant.stdout, "warning")
  })
})

describe.concurrent("webhooks test", () => {
  it("sends an event to each webhook or to one, and fails if one is not delivered", async () => {
    const receiver = await startReceiver()
    receiver.answer = (response, { path }) => void response.writeHead(path === "/hook" ? 200 : 500).end()
    const secret = `whsec_${Buffer.alloc(32, "c").toString("base64")}`
    const webhooks = [
      { name: "ops", url: receiver.url, secret: "${HOOK_SECRET}" },
      { name: "broken", url: `${receiver.url}/broken`, secret }
    ]
    const env = { GATEWAY_CONFIG_PATH: file("hooks.json", { webhooks }), HOOK_SECRET: secret }
    const [all, one, none] = await Promise.all([
      run(["webhooks", "test"], { env }),
      run(["webhooks", "test", "ops"], { env }),
      run(["webhooks", "test", "other"], { env })
    ])
    await receiver.stop()
    const lines = (text: string) => text.replaceAll(/\d+ ms/g, "ms")
    assert.deepEqual([all.code, lines(all.stdout), all.stderr], [
      1,
      "ops: delivered, HTTP 200 (ms)\nbroken: the receiver answers with HTTP 500 (ms)\n",
      "1 of 2 webhooks failed\n"
    ])
    assert.deepEqual([one.code, lines(one.stdout), one.stderr], [0, "ops: delivered, HTTP 200 (ms)\n", ""])
    assert.deepEqual([none.code, none.stdout], [1, ""])
    assert.strictEqual(none.stderr, `${env.GATEWAY_CONFIG_PATH} has no webhook other\n`)
    assert.strictEqual(receiver.received.length, 3)
    assert.isTrue(receiver.received.every((delivery) => isSignedBy(secret, delivery)))
  })
})

describe.concurrent("misspelt configuration", () => {
  const misspelt = file("config.json", { $schema: "./schema.json", runtime: { acount_max_inflight: 3 } })
  const warning = `${misspelt}: runtime.acount_max_inflight is an unknown field: ` +
    "did you mean runtime.account_max_inflight?\n"

  it("is valid with a warning, and fails where that is asked for", async () => {
    const [kept, strict] = await Promise.all([
      runHere(["check-config", misspelt]),
      runHere(["check-config", "--strict", misspelt])
    ])
    assert.deepEqual([kept.code, kept.stderr], [0, warning])
    assert.deepEqual([strict.code, strict.stdout], [1, ""])
    assert.strictEqual(strict.stderr, `${warning}${misspelt}: 1 warning, and --strict is set\n`)
  })

  it("is found by editors: the schema is a command away", async () => {
    const { code, stdout } = await run(["config-schema"])
    assert.strictEqual(code, 0)
    const schema = JSON.parse(stdout) as { readonly $schema: string; readonly properties: Record<string, unknown> }
    assert.match(schema.$schema, /json-schema\.org\/draft\/2020-12/)
    assert.containsAllKeys(schema.properties, ["$schema", "keys", "accounts", "upstream", "runtime"])
  })
})

describe.concurrent("sieve", () => {
  const tools = file("tools.json", [{
    type: "function",
    function: { name: "weather", parameters: { type: "object" } }
  }])

  it("prints the events of a text, one a line", async () => {
    const { code, stdout } = await run(["sieve", file("text.txt", written), "--tools", tools])
    assert.strictEqual(code, 0)
    assert.deepEqual(eventsIn(stdout), [{ _tag: "TextDelta", text: "Let me look.\n" }, ...sieved])
  })

  it("reads standard input, and tools as any style declares them", async () => {
    const { stdout } = await run(["sieve", "-", "--tools", file("body.json", { tools: [{ name: "weather" }] })], {
      input: written
    })
    assert.deepEqual(eventsIn(stdout).slice(-3), sieved)
  })

  it("says that a file is missing, or cannot be read", async () => {
    const [at, none] = [folder(), path.join(folder(), "none.txt")]
    const [missing, wrong] = await Promise.all([runHere(["sieve", none]), runHere(["sieve", at])])
    assert.deepEqual([missing.code, missing.stdout, missing.stderr], [1, "", `${none}: there is no such file\n`])
    assert.deepEqual([wrong.code, wrong.stdout, wrong.stderr], [1, "", `${at} is a folder, not a file\n`])
  })

  it("ends quietly when the reader closes its output", async () => {
    const many = file("many.txt", "a line of text with words\n".repeat(200_000))
    const running = start(["sieve", many])
    await running.printed(/TextDelta/)
    running.child.stdout?.destroy()
    const { code, stderr } = await running.ended
    assert.deepEqual([code, stderr], [0, ""])
  })

  it("fails for a text or tools that are not there or not right", async () => {
    const [absent, wrong] = await Promise.all([
      runHere(["sieve", path.join(folder(), "none.txt")]),
      runHere(["sieve", file("text.txt", written), "--tools", file("tools.json", [{ title: "weather" }])])
    ])
    assert.deepEqual([absent.code, wrong.code], [1, 1])
    assert.match(absent.stderr, /none\.txt/)
    assert.notMatch(absent.stderr + wrong.stderr, /^ {4}at /m)
  })
})

interface Chunk {
  readonly choices: ReadonlyArray<
    { readonly delta: { readonly content?: string; readonly reasoning_content?: string } }
  >
}

/** The text of a chat stream, reasoning first. */
const textOf = (frames: string): string =>
  parseFrames(frames).flatMap(({ data }) => data === "[DONE]" ? [] : (JSON.parse(data) as Chunk).choices)
    .map(({ delta }) => delta.reasoning_content ?? delta.content ?? "").join("")

describe.concurrent("replay", () => {
  it("plays a saved sample through any style, as a stream or whole", async () => {
    const samples = folder()
    const gateway = await startGateway({ samples: { dir: samples } })
    const captured = await fetch(`${gateway.url}/admin/dev/raw-samples/capture`, {
      method: "POST",
      headers: { authorization: `Bearer ${adminKey}` },
      body: JSON.stringify({
        sample_id: "greeting",
        model: "upstream-reasoner",
        message: "!think Hm.\n!call weather {\"city\":\"Paris\"}"
      })
    })
    const live = await captured.text()
    await gateway.stop()
    const sample = path.join(samples, "greeting")

    const [chat, messages] = await Promise.all([
      run(["replay", sample, "--model", "upstream-reasoner"]),
      runHere([
        "replay",
        "greeting",
        "--style",
        "messages",
        "--whole",
        "--tools",
        file("t.json", [{ name: "weather" }])
      ], {
        env: { GATEWAY_CONFIG_JSON: JSON.stringify({ samples: { dir: samples } }) }
      })
    ])
    assert.match(textOf(live), /^Hm\..*weather.*Paris/s)
    assert.deepEqual([textOf(chat.stdout), chat.code], [textOf(live), 0])
    const whole = JSON.parse(messages.stdout) as { readonly content: ReadonlyArray<{ readonly type: string }> }
    assert.deepEqual(whole.content.map(({ type }) => type), ["tool_use"])
  })

  it("says that there is no such sample", async () => {
    const { code, stderr, stdout } = await runHere(["replay", "./nothing/here"])
    assert.deepEqual([code, stdout], [1, ""])
    assert.match(stderr, /^here in \.\/nothing: .*no complete sample.*\n$/i)
  })
})

/** Whether git knows the sources, of which the service is bundled. */
const isCheckout = spawnSync("git", ["rev-parse", "HEAD"], { cwd: import.meta.dirname }).status === 0

describe.concurrent("the command line", () => {
  it("has help, a version, and completions for shells", async () => {
    const [help, version, completions] = await Promise.all([
      run(["sieve", "--help"]),
      run(["--version"]),
      run(["--completions", "bash"])
    ])
    assert.match(help.stdout, /USAGE\n +model-gateway sieve/)
    assert.match(
      version.stdout,
      isCheckout
        ? /^model-gateway v\d+\.\d+\.\d+ \(commit [\da-f]{12}(?:-dirty)?, built \d{4}-\d\d-\d\d, node v\d[\d.]*, \w+-\w+, bundle\)\n$/
        : /^model-gateway v\d+\.\d+\.\d+ \(commit unknown, built unknown, node v\d[\d.]*, \w+-\w+, bundle\)\n$/
    )
    assert.match(completions.stdout, /check-config/)
    assert.deepEqual([help.code, version.code, completions.code], [0, 0, 0])
  })

  it("fails with the usage for what it does not know", async () => {
    const [command, flag] = await Promise.all([run(["nonsense"]), run(["serve", "--nonsense"])])
    assert.deepEqual([command.code, flag.code], [1, 1])
    assert.match(command.stderr, /nonsense/)
    assert.match(flag.stderr, /nonsense/)
  })
})
