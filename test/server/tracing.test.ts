/** Traces and logs as an OTLP collector receives them, and the log line and timing of a request. */
import { assert, describe, it } from "@effect/vitest"
import * as conventions from "@opentelemetry/semantic-conventions/incubating"
import { Logger } from "effect"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import type { RawConfig } from "../../src/config/json.ts"
import { isServer, protocolNames, providerOf } from "../../src/contracts/drivers.ts"
import { cloudNames } from "../../src/contracts/names.ts"
import { adminKey, businessKey, startGateway } from "../support/gateway.ts"
import { type OpenAiServer, startOpenAiServer, streamed } from "../support/openaiServer.ts"
import { pageText, snippetsOf } from "../support/snippets.ts"

interface Attribute {
  readonly key: string
  readonly value: { readonly stringValue?: string; readonly intValue?: number | string }
}

interface Span {
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly attributes: ReadonlyArray<Attribute>
}

interface Measured {
  readonly name: string
  readonly unit: string
  readonly histogram?: { readonly dataPoints: ReadonlyArray<{ readonly attributes: ReadonlyArray<Attribute> }> }
}

/** Receives all exports. */
const startCollector = async () => {
  const received: Array<{ readonly path: string; readonly text: string; readonly credential: string | undefined }> = []
  const server = createServer((request, response) => {
    let text = ""
    request.setEncoding("utf8").on("data", (piece: string) => {
      text += piece
    }).on("end", () => {
      received.push({ path: request.url ?? "", text, credential: request.headers.authorization })
      response.setHeader("content-type", "application/json").end("{}")
    })
  })
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve)
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    text: () => received.map(({ text }) => text).join("\n"),
    credentials: () => [...new Set(received.map(({ credential }) => credential))],
    paths: () => new Set(received.map(({ path }) => path)),
    spans: (): ReadonlyArray<Span> =>
      received.filter(({ path }) => path === "/v1/traces").flatMap(({ text }) =>
        (JSON.parse(text) as {
          readonly resourceSpans: ReadonlyArray<{
            readonly scopeSpans: ReadonlyArray<{ readonly spans: ReadonlyArray<Span> }>
          }>
        }).resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))
      ),
    metrics: (): ReadonlyArray<Measured> =>
      received.filter(({ path }) => path === "/v1/metrics").flatMap(({ text }) =>
        (JSON.parse(text) as {
          readonly resourceMetrics: ReadonlyArray<{
            readonly scopeMetrics: ReadonlyArray<{ readonly metrics: ReadonlyArray<Measured> }>
          }>
        }).resourceMetrics.flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics))
      ),
    stop: () =>
      new Promise((resolve) => {
        server.close(resolve)
        server.closeAllConnections()
      })
  }
}

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736"
const callerSpan = "00f067aa0ba902b7"
const prompt = "What nobody else may read"
const answer = "Which is nobody's business"

/** One streamed request of a caller with a trace, with its key in the query. */
const streamOne = async (url: string, description = "") => {
  const response = await fetch(
    `${url}/v1beta/models/own-model:streamGenerateContent?alt=sse&key=${encodeURIComponent(businessKey)}`,
    {
      method: "POST",
      headers: { traceparent: `00-${traceId}-${callerSpan}-01`, "x-request-id": "the-request" },
      body: JSON.stringify({
        contents: [{ role: "user", parts: [{ text: prompt }] }],
        tools: [{ functionDeclarations: [{ name: "first_tool", description }, { name: "second_tool" }] }]
      })
    }
  )
  assert.include(await response.text(), answer)
}

const configOf = (upstream: OpenAiServer, telemetry: RawConfig): RawConfig => ({
  accounts: [{ email: "person@example.com", token: "token-of-the-account" }],
  upstream: { driver: "openai", base_url: upstream.baseUrl, models: { "own-model": "m" } },
  telemetry
})

/** What the collector and the upstream received for one streamed request. */
const traced = async (
  telemetry: RawConfig,
  environment: "with a collector" | "without" = "with a collector",
  variables: Readonly<Record<string, string>> = {},
  config: (upstream: OpenAiServer, telemetry: RawConfig) => RawConfig = configOf,
  endpoint: (url: string) => Readonly<Record<string, string>> = (url) => ({ OTEL_EXPORTER_OTLP_ENDPOINT: url }),
  description = ""
) => {
  const collector = await startCollector()
  const upstream = await startOpenAiServer()
  upstream.answer(() => streamed({ content: answer }))
  const gateway = await startGateway(config(upstream, telemetry), {
    logger: Logger.make(() => undefined),
    environment: environment === "without" ? {} : { ...endpoint(collector.url), ...variables }
  })
  await streamOne(gateway.url, description)
  await gateway.stop()
  const headers = upstream.requests[0]?.headers ?? {}
  await upstream.stop()
  await collector.stop()
  return { collector, headers }
}

const attributes = (span: Span | undefined) =>
  Object.fromEntries(
    (span?.attributes ?? []).map(({ key, value }) => [key, value.stringValue ?? Number(value.intValue ?? Number.NaN)])
  )

const named = (spans: ReadonlyArray<Span>, name: string): Span => {
  const found = spans.filter((span) => span.name === name)
  assert.lengthOf(found, 1, name)
  return found[0]!
}

describe("what is exported", () => {
  it("names the service as the standard variables do", async () => {
    const attributes = "service.name=from%20attributes,deployment.environment.name=test"
    for (
      const [variables, name] of [
        [{}, "model-gateway"],
        [{ OTEL_RESOURCE_ATTRIBUTES: attributes }, "from attributes"],
        [{ OTEL_SERVICE_NAME: " ", OTEL_RESOURCE_ATTRIBUTES: attributes }, "from attributes"],
        [{ OTEL_SERVICE_NAME: "gateway-eu", OTEL_RESOURCE_ATTRIBUTES: attributes }, "gateway-eu"]
      ] as const
    ) {
      const { collector } = await traced({}, "with a collector", variables)
      const names = [...collector.text().matchAll(/"service\.name","value":\{"stringValue":"([^"]*)"/g)]
      assert.isAbove(names.length, 0)
      for (const [, named] of names) assert.strictEqual(named, name)
    }
  })
})

describe("the lines of the page about telemetry", () => {
  it.each(snippetsOf(pageText("docs/operate/telemetry.md"), "sh telemetry").map(({ text }) => text))(
    "send to the path and with the header that they name: %s",
    async (text) => {
      const lines = text.trim().split("\n").map((
        line
      ) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)])
      const { OTEL_EXPORTER_OTLP_ENDPOINT: all = "", OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: one, ...others } = Object
        .fromEntries(
          lines
        ) as Record<string, string>
      const path = new URL(one ?? `${all}/v1/traces`).pathname
      const { collector } = await traced(
        { capture_content: true },
        "with a collector",
        others,
        configOf,
        (url) =>
          one === undefined
            ? { OTEL_EXPORTER_OTLP_ENDPOINT: url + new URL(all).pathname.replace(/\/$/, "") }
            : { OTEL_EXPORTER_OTLP_ENDPOINT: "", OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: url + new URL(one).pathname }
      )
      assert.include([...collector.paths()], path)
      const header = others["OTEL_EXPORTER_OTLP_HEADERS"]?.replace("Authorization=", "")
      if (header !== undefined) assert.deepEqual(collector.credentials(), [decodeURIComponent(header)])
    }
  )
})

describe("the names of what is exported", () => {
  it("are in the stated version of the GenAI conventions, and are not deprecated", async () => {
    const { devDependencies } = JSON.parse(pageText("package.json")) as { devDependencies: Record<string, string> }
    const version = devDependencies["@opentelemetry/semantic-conventions"]!
    assert.include(
      pageText("docs/reference/environment.md"),
      `version ${version} of OpenTelemetry's semantic conventions`
    )
    const valuesOf = (kind: string) =>
      new Set(Object.entries(conventions).flatMap(([name, value]) => name.startsWith(kind) ? [String(value)] : []))
    const deprecated = ["system", "prompt", "completion", "usage.prompt_tokens", "usage.completion_tokens"]
    const [known, metrics] = [valuesOf("ATTR_GEN_AI_"), valuesOf("METRIC_GEN_AI_")]
    const sources = [
      "completion/attemptSpan",
      "server/observability/Observability",
      "server/observability/requestMetrics"
    ]
    const text = sources.map((name) => pageText(`src/${name}.ts`)).join("\n")
    const names = [...text.matchAll(/"(gen_ai\.[a-z_.]+)"/g)].map(([, name]) => name!)
    assert.isAbove(names.length, 10)
    for (const name of names) {
      assert.isTrue(known.has(name) && !deprecated.includes(name.slice("gen_ai.".length)), name)
    }
    const underlined = [...text.matchAll(/Metric\.\w+\("(gen_ai_[a-z_]+?)(?:_seconds)?"/g)].map(([, name]) => name!)
    const known_ = new Set([...metrics].map((name) => name.replaceAll(".", "_")))
    assert.isAbove(underlined.length, 2)
    for (const name of underlined) assert.isTrue(known_.has(name), name)
    for (const [, label] of text.matchAll(/(gen_ai_[a-z_]+):/g)) {
      assert.isTrue([...known].some((name) => name.replaceAll(".", "_") === label), label)
    }
  })
})

describe("metrics", () => {
  it("have the names, units and attributes of the conventions at a collector", async () => {
    const { collector } = await traced({})
    const measured = new Map(
      collector.metrics().filter(({ name }) => name.startsWith("gen_ai")).map((metric) => [metric.name, metric])
    )
    const keys = (name: string) =>
      (measured.get(name)?.histogram?.dataPoints[0]?.attributes ?? []).map(({ key }) => key)
    const of = ["gen_ai.operation.name", "gen_ai.request.model"]
    assert.deepEqual([...measured].map(([name, { unit }]) => [name, unit, keys(name)]).sort(), [
      [conventions.METRIC_GEN_AI_CLIENT_TOKEN_USAGE, "{token}", [...of, "gen_ai.token.type"]],
      [conventions.METRIC_GEN_AI_SERVER_REQUEST_DURATION, "s", [...of, "style"]],
      [conventions.METRIC_GEN_AI_SERVER_TIME_TO_FIRST_TOKEN, "s", of]
    ])
  })
})

describe("the provider of an attempt", () => {
  const known = new Set(
    Object.entries(conventions).flatMap(([name, value]) =>
      name.startsWith("GEN_AI_PROVIDER_NAME_VALUE_") ? [String(value)] : []
    )
  )

  it("is a value of the conventions for each server, by its cloud or else by its contract", () => {
    const servers = protocolNames.filter(isServer)
    const providers = [
      ...servers.map((driver) => providerOf(driver, undefined)),
      ...cloudNames.map((cloud) => providerOf("openai", cloud))
    ]
    for (const provider of providers) assert.isTrue(known.has(provider), provider)
    assert.deepEqual(providers, [
      "openai",
      "openai",
      "anthropic",
      "gcp.gemini",
      "aws.bedrock",
      "aws.bedrock",
      "gcp.vertex_ai",
      "azure.ai.openai"
    ])
    assert.strictEqual(providerOf("session", undefined), "session")
  })

  it("is the cloud's in its span", async () => {
    const { collector } = await traced({}, "with a collector", {}, (upstream, telemetry) => ({
      accounts: [{ token: "token-of-the-account" }],
      upstream: {
        driver: "openai",
        vendor: "bedrock",
        region: "eu-central-1",
        base_url: new URL(upstream.baseUrl).origin,
        models: { "own-model": "m" }
      },
      telemetry
    }))
    assert.include(attributes(named(collector.spans(), "chat own-model")), { "gen_ai.provider.name": "aws.bedrock" })
  })
})

describe("traces", () => {
  it("show a streamed request with its attempt and its upstream request, each below the other", async () => {
    const { collector } = await traced({})
    const spans = collector.spans()
    const request = named(spans, "POST /v1beta/models/:model:streamGenerateContent")
    const completion = named(spans, "Completion.open")
    const attempt = named(spans, "chat own-model")
    const exchange = named(spans, "POST")
    assert.deepEqual(
      [request, completion, attempt, exchange].map((span) => [span.traceId, span.parentSpanId]),
      [callerSpan, request.spanId, completion.spanId, attempt.spanId].map((parent) => [traceId, parent])
    )
    assert.include(attributes(request), {
      "http.route": "/v1beta/models/:model:streamGenerateContent",
      "http.response.status_code": 200,
      "gateway.request_id": "the-request",
      "gateway.style": "generate"
    })
    assert.include(attributes(attempt), {
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "openai",
      "gen_ai.request.model": "own-model",
      "gen_ai.usage.input_tokens": 11,
      "gen_ai.usage.output_tokens": 7
    })
    assert.strictEqual(attributes(exchange)["http.response.status_code"], 200)
    assert.isTrue(collector.paths().has("/v1/logs"))
  })

  it("name the upstream and the target where there are several", async () => {
    const { collector } = await traced({}, "with a collector", {}, (upstream, telemetry) => ({
      upstreams: { gpu: { driver: "openai", base_url: upstream.baseUrl, models: { "own-model": "m" } } },
      telemetry
    }))
    const spans = collector.spans()
    for (const name of ["POST /v1beta/models/:model:streamGenerateContent", "chat own-model"]) {
      assert.include(attributes(named(spans, name)), { "gateway.upstream": "gpu", "gateway.target": "gpu/own-model" })
    }
  })

  it("hold neither credentials nor queries nor what was said", async () => {
    const { collector } = await traced({})
    for (
      const secret of [
        businessKey,
        adminKey,
        "token-of-the-account",
        "person@example.com",
        "alt=sse",
        prompt,
        answer,
        "first_tool"
      ]
    ) {
      assert.notInclude(collector.text(), secret)
    }
  })

  it("hold what was said where that is switched on, and no more", async () => {
    const { collector } = await traced({ capture_content: true })
    const said = attributes(named(collector.spans(), "chat own-model"))
    assert.include(String(said["gen_ai.input.messages"]), prompt)
    assert.include(String(said["gen_ai.output.messages"]), answer)
    // All tools are one attribute.
    assert.deepEqual(
      (JSON.parse(String(said["gen_ai.tool.definitions"])) as ReadonlyArray<{ name: string }>).map(({ name }) => name),
      [
        "first_tool",
        "second_tool"
      ]
    )
    assert.notInclude(collector.text(), businessKey)
    assert.notInclude(collector.text(), "token-of-the-account")
  })

  it("have the names of declared tools alone where the declarations are longer than an attribute should be", async () => {
    const attributeOf = async (description: string) => {
      const { collector } = await traced(
        { capture_content: true },
        "with a collector",
        {},
        configOf,
        undefined,
        description
      )
      return String(attributes(named(collector.spans(), "chat own-model"))["gen_ai.tool.definitions"])
    }
    const short = await attributeOf("d".repeat(32_000))
    assert.isAtMost(short.length, 32_768)
    assert.include(short, "dddd")
    const long = await attributeOf("d".repeat(32_768))
    assert.deepEqual(JSON.parse(long), [
      { type: "function", name: "first_tool" },
      { type: "function", name: "second_tool" }
    ])
  })

  it("go on upstream only where that is switched on", async () => {
    const [off, on, untraced] = await Promise.all([
      traced({}),
      traced({ propagate: true }),
      traced({ propagate: true }, "without")
    ])
    assert.notProperty(off.headers, "traceparent")
    const attempt = named(on.collector.spans(), "chat own-model")
    assert.strictEqual(on.headers["traceparent"], `00-${traceId}-${attempt.spanId}-01`)
    // Without spans of the gateway, the upstream gets the caller's trace context.
    assert.strictEqual(untraced.headers["traceparent"], `00-${traceId}-${callerSpan}-01`)
    assert.strictEqual(untraced.collector.text(), "")
  })
})

/** A gateway that records its log lines. */
const logged = async (use: (url: string, upstream: OpenAiServer) => Promise<unknown>) => {
  const lines: Array<{ readonly level: string; readonly message: string; readonly fields: Record<string, unknown> }> =
    []
  const upstream = await startOpenAiServer()
  const gateway = await startGateway(configOf(upstream, {}), {
    logger: Logger.map(Logger.formatStructured, ({ annotations, level, message }) => {
      lines.push({ level, message: String(message), fields: annotations })
    })
  })
  await use(gateway.url, upstream)
  await gateway.stop()
  await upstream.stop()
  return lines
}

describe("log lines", () => {
  it("report a request in one line, without keys, identities or content", async () => {
    const lines = await logged((url, upstream) => {
      upstream.answer(() => streamed({ content: answer }))
      return streamOne(url)
    })
    const requests = lines.filter(({ message }) => message === "request")
    assert.lengthOf(requests, 1)
    const { account, duration_ms, first_event_ms, key, queue_ms, ...fields } = requests[0]!.fields
    assert.deepEqual([requests[0]!.level, fields], ["INFO", {
      request_id: "the-request",
      client: "127.0.0.0/24",
      style: "generate",
      app: "other",
      model: "own-model",
      requested_model: "own-model",
      stream: true,
      status: 200,
      outcome: "stop",
      attempts: 1,
      input_tokens: 11,
      output_tokens: 7
    }])
    assert.match(String(account), /^[0-9a-f]{12}$/)
    assert.match(String(key), /^[0-9a-f]{16}$/)
    for (const time of [duration_ms, first_event_ms, queue_ms]) assert.isAtLeast(Number(time), 0)
    const text = JSON.stringify(lines)
    for (const secret of [businessKey, "token-of-the-account", "person@example.com", prompt, answer]) {
      assert.notInclude(text, secret)
    }
  })

  it("call a caller that left no error", async () => {
    const lines = await logged(async (url, upstream) => {
      upstream.answer(() => ({ headless: true, after: "hang" }))
      const leaving = new AbortController()
      const left = fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        signal: leaving.signal,
        headers: { authorization: `Bearer ${businessKey}` },
        body: JSON.stringify({ model: "own-model", messages: [{ role: "user", content: prompt }] })
      }).catch(() => "left")
      await upstream.until((requests) => requests.length === 1)
      leaving.abort()
      assert.strictEqual(await left, "left")
      await upstream.until((requests) => requests[0]?.outcome === "aborted")
    })
    const requests = lines.filter(({ message }) => message === "request")
    assert.deepEqual(requests.map(({ fields, level }) => [level, fields["outcome"]]), [["INFO", "client_left"]])
    assert.isEmpty(lines.filter(({ level }) => level === "ERROR" || level === "WARN"))
  })

  it("report a change by an operator in one line, without its content", async () => {
    const lines = await logged((url) =>
      fetch(`${url}/admin/keys`, {
        method: "POST",
        headers: { authorization: `Bearer ${adminKey}` },
        body: JSON.stringify({ key: "a-key-that-is-new" })
      })
    )
    const changes = lines.filter(({ message }) => message.startsWith("Admin change"))
    assert.lengthOf(changes, 1)
    assert.property(changes[0]!.fields, "request_id")
    assert.notInclude(JSON.stringify(lines), "a-key-that-is-new")
  })
})

describe("Server-Timing", () => {
  it("separates the time of queue, upstream and gateway on every completion", async () => {
    await logged(async (url, upstream) => {
      upstream.answer(() => streamed({ content: answer }))
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${businessKey}` },
        body: JSON.stringify({ model: "own-model", messages: [{ role: "user", content: prompt }] })
      })
      assert.match(response.headers.get("server-timing") ?? "", /^queue;dur=\d+, upstream;dur=\d+, gateway;dur=\d+$/)
      await response.text()
      const models = await fetch(`${url}/v1/models`)
      assert.isNull(models.headers.get("server-timing"))
    })
  })
})
