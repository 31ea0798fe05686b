// The servers in front of which the gateway is tested, with tiny models: how each is started, and what it is known to have.
import { execFile } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import path from "node:path"
import { promisify } from "node:util"
import type { Driver } from "./checks.ts"
import { cache, install } from "./install.ts"
import { contextWindow, ggufOf, type ModelName, models, writeModels } from "./models.ts"
import { cpuSeconds, freePort, type Running, sleep, start } from "./processes.ts"
import type { ProgramName } from "./versions.ts"

/** A server that runs. */
export interface RealServer {
  readonly name: ProgramName
  /** The drivers of the gateway that speak to it. */
  readonly drivers: ReadonlyArray<Driver>
  /** The address that serves a model, without a version, and the server's name of the model. Starts what is not running. */
  readonly serving: (model: ModelName) => Promise<{ readonly url: string; readonly model: string }>
  /** Whether it works on a reply of the model. */
  readonly isBusy: (model: ModelName) => Promise<boolean>
  /** Kills the process that serves a model. `serving` starts it again at the same address. */
  readonly kill: (model: ModelName) => Promise<void>
  readonly stop: () => Promise<void>
  /** How chat completions say whether to think, where the default of the driver does not do it. */
  readonly thinking?: "template"
  /** The settings of its upstream in `docs/servers`, besides its address. */
  readonly upstream?: { readonly whole_replies: "streamed" }
  /** False if it lists no models of its own, so that the configuration names them. */
  readonly isListed?: boolean
  /** The key that it asks for. */
  readonly key?: string
}

const run = promisify(execFile)

const modelsFolder = path.join(cache, "models")

/** The context window of a model in tokens. The prompt of an agent has a token for each letter. */
const windowOf = (model: ModelName): number => model === "agent" ? contextWindow : contextWindow / 2

/** The program that runs llama.cpp's server of the Python package; its arguments are the file, the name, the port and the window. */
const llamaProgram = `
import signal, sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, name, params.port = sys.argv[1], sys.argv[2], int(sys.argv[3])
params.model_alias = {name}
params.n_ctx = int(sys.argv[4])
params.n_parallel = 4
params.kv_unified = True
params.cpuparams.n_threads = 1
params.endpoint_metrics = True
params.embedding = name in ("embedder", "ranker")
if name == "ranker":
    params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_RANK
server = xllamacpp.Server(params)
signal.pause()
`

/** Whether a process has worked for most of a moment. */
const isWorking = async (pid: number): Promise<boolean> => {
  const before = cpuSeconds(pid)
  await sleep(250)
  return cpuSeconds(pid) - before > 0.08
}

/** How one of several processes of a server is started. */
interface OwnProcess {
  readonly command: string
  readonly args: (model: ModelName, port: number) => ReadonlyArray<string>
  readonly env?: NodeJS.ProcessEnv
  readonly cwd?: string
  /** The most that run; the one that was asked for longest ago ends. Without it all of them run. */
  readonly most?: number
}

/** Processes that serve a model each, at an address that stays the same. */
const processes = (server: string, { args, command, cwd, env, most = Infinity }: OwnProcess) => {
  const logs = path.join(cache, "logs")
  mkdirSync(logs, { recursive: true })
  const ports = new Map<ModelName, number>()
  const running = new Map<ModelName, Promise<Running>>()
  const urlOf = (model: ModelName) => `http://127.0.0.1:${ports.get(model)}`
  const launch = async (model: ModelName) => {
    const port = ports.get(model) ?? await freePort()
    ports.set(model, port)
    return start({
      command,
      args: args(model, port),
      ...(env === undefined ? {} : { env }),
      ...(cwd === undefined ? {} : { cwd }),
      log: path.join(logs, `${server}-${model}.log`),
      ready: `${urlOf(model)}/health`
    })
  }
  const serving = async (model: ModelName) => {
    const own = running.get(model) ?? launch(model)
    // The one that is asked for last is the last of the map.
    running.delete(model)
    running.set(model, own)
    if (running.size > most) await kill([...running.keys()][0]!)
    await own
    return { url: urlOf(model), model }
  }
  const kill = async (model: ModelName) => {
    const process = await running.get(model)
    running.delete(model)
    await process?.kill()
  }
  const stop = async () => {
    for (const model of running.keys()) await kill(model)
  }
  return { serving, kill, stop, urlOf }
}

const llamaCpp = async (): Promise<RealServer> => {
  const folder = await install("llama.cpp")
  const program = path.join(cache, "llama.py")
  writeFileSync(program, llamaProgram)
  const { kill, serving, stop, urlOf } = processes("llama.cpp", {
    command: path.join(folder, "bin/python"),
    args: (model, port) => [program, ggufOf(modelsFolder, model), model, String(port), String(windowOf(model))]
  })
  return {
    name: "llama.cpp",
    drivers: ["openai", "responses", "messages"],
    thinking: "template",
    serving,
    isBusy: async (model) => {
      const slots = await (await fetch(`${urlOf(model)}/slots`)).json() as ReadonlyArray<{ is_processing: boolean }>
      return slots.some((slot) => slot.is_processing)
    },
    kill,
    stop,
    upstream: { whole_replies: "streamed" }
  }
}

/** vLLM on processors, a process for each model. */
const vllm = async (): Promise<RealServer> => {
  const folder = await install("vLLM")
  const { kill, serving, stop, urlOf } = processes("vLLM", {
    command: path.join(folder, "bin/vllm"),
    args: (model, port) => [
      ...`serve ${model} --host 127.0.0.1 --port ${port} --dtype float32 --enforce-eager`.split(" "),
      "--max-model-len",
      String(windowOf(model)),
      // Blocks of 128 tokens.
      ..."--num-gpu-blocks-override 160 --max-num-seqs 4".split(" "),
      ...(model === "embedder" || model === "ranker"
        ? ["--runner", "pooling"]
        : ["--enable-auto-tool-choice", "--tool-call-parser", "hermes"]),
      ...(model === "thinker" ? ["--reasoning-parser", "qwen3"] : [])
    ],
    env: {
      VLLM_CPU_KVCACHE_SPACE: "1",
      VLLM_CPU_OMP_THREADS_BIND: "nobind",
      VLLM_NO_USAGE_STATS: "1",
      HF_HUB_OFFLINE: "1",
      OMP_NUM_THREADS: "1"
    },
    cwd: modelsFolder,
    // Each takes two gigabytes.
    most: 6
  })
  return {
    name: "vLLM",
    drivers: ["openai", "responses", "messages"],
    thinking: "template",
    serving,
    isBusy: async (model) =>
      /^vllm:num_requests_running\{[^}]*\} [1-9]/m.test(await (await fetch(`${urlOf(model)}/metrics`)).text()),
    kill,
    stop
  }
}

/** The template of a model for Ollama, which has a language of its own. */
const ollamaTemplate = (model: ModelName): string => {
  const { thinks } = { thinks: false, ...models[model] }
  const tools =
    `{{- if .Tools }}Tools:{{ range .Tools }}\n{{ . }}{{ end }}\nA call is JSON within <tool_call></tool_call>:\n{{ end }}`
  return `{{- if or .System .Tools }}<|im_start|>system\n{{ .System }}\n${tools}<|im_end|>\n{{ end }}` +
    `{{- range $i, $_ := .Messages }}{{- $last := eq (len (slice $.Messages $i)) 1 }}` +
    `{{- if eq .Role "user" }}<|im_start|>user\n{{ .Content }}<|im_end|>\n` +
    `{{ else if eq .Role "assistant" }}<|im_start|>assistant\n` +
    (thinks ? `{{ if .Thinking }}<think>\n{{ .Thinking }}\n</think>\n\n{{ end }}` : "") +
    `{{ .Content }}` +
    `{{- if .ToolCalls }}{{ range .ToolCalls }}<tool_call>\n{"name": "{{ .Function.Name }}", "arguments": {{ .Function.Arguments }}}\n</tool_call>{{ end }}{{ end }}` +
    `{{ if not $last }}<|im_end|>\n{{ end }}` +
    `{{ else if eq .Role "tool" }}<|im_start|>user\n<tool_response>\n{{ .Content }}\n</tool_response><|im_end|>\n{{ end }}` +
    `{{- if and (ne .Role "assistant") $last }}<|im_start|>assistant\n` +
    (thinks ? `{{ if and $.IsThinkSet (not $.Think) }}<think>\n\n</think>\n\n{{ end }}` : "") +
    `{{ end }}{{ end }}`
}

const ollama = async (): Promise<RealServer> => {
  const folder = await install("Ollama")
  const own = path.join(cache, "ollama")
  mkdirSync(own, { recursive: true })
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const command = path.join(folder, "bin/ollama")
  const env = {
    OLLAMA_HOST: `127.0.0.1:${port}`,
    OLLAMA_MODELS: path.join(own, "models"),
    OLLAMA_CONTEXT_LENGTH: "1024",
    OLLAMA_KEEP_ALIVE: "-1",
    OLLAMA_MAX_LOADED_MODELS: String(Object.keys(models).length),
    OLLAMA_NUM_PARALLEL: "2",
    HOME: own
  }
  const launch = () =>
    start({ command, args: ["serve"], env, log: path.join(cache, "logs/ollama.log"), ready: `${url}/api/version` })
  let running: Running | undefined = await launch()
  // A model whose file asks for a window of its own.
  const wide = path.join(own, "wide.modelfile")
  writeFileSync(wide, `FROM ${ggufOf(modelsFolder, "writer")}\nPARAMETER num_ctx 2048`)
  await run(command, ["create", "wide", "-f", wide], { env: { ...process.env, ...env } })
  for (const model of Object.keys(models) as Array<ModelName>) {
    const file = path.join(own, `${model}.modelfile`)
    const ends = models[model].format === "llama"
      ? "<|eot_id|>"
      : models[model].format === "deepseek"
      ? "<｜end▁of▁sentence｜>"
      : "<|im_end|>"
    writeFileSync(
      file,
      [
        `FROM ${ggufOf(modelsFolder, model)}`,
        `TEMPLATE """${ollamaTemplate(model)}"""`,
        `PARAMETER stop ${ends}`,
        "PARAMETER num_thread 1",
        ...(model === "agent" ? [`PARAMETER num_ctx ${contextWindow}`] : [])
      ].join("\n")
    )
    await run(command, ["create", model, "-f", file], { env: { ...process.env, ...env } })
  }
  return {
    name: "Ollama",
    drivers: ["openai", "responses", "messages"],
    serving: async (model) => {
      running ??= await launch()
      return { url, model: `${model}:latest` }
    },
    isBusy: () => running === undefined ? Promise.resolve(false) : isWorking(running.pid),
    kill: async () => {
      await running?.kill()
      running = undefined
    },
    stop: async () => {
      await running?.kill()
    }
  }
}

/** LiteLLM's proxy in front of llama.cpp, as a hosted provider that asks for a key. */
const litellm = async (): Promise<RealServer> => {
  const folder = await install("LiteLLM")
  const behind = await llamaCpp()
  const key = "sk-servers"
  const list = []
  for (const model of Object.keys(models) as Array<ModelName>) {
    const { url } = await behind.serving(model)
    list.push({
      model_name: model,
      litellm_params: { model: `openai/${model}`, api_base: `${url}/v1`, api_key: "none" },
      // It refuses words about thinking for models of which it does not know this.
      ...("thinks" in models[model] ? { model_info: { supports_reasoning: true } } : {})
    })
  }
  // JSON is YAML.
  const config = path.join(cache, "litellm.yaml")
  writeFileSync(config, JSON.stringify({ model_list: list, general_settings: { master_key: key } }))
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const launch = () =>
    start({
      command: path.join(folder, "bin/litellm"),
      args: ["--config", config, "--host", "127.0.0.1", "--port", String(port)],
      // It imports modules of the folder two levels above the current one.
      cwd: path.join(folder, "bin"),
      env: { LITELLM_LOCAL_MODEL_COST_MAP: "True", NO_PROXY: "127.0.0.1" },
      log: path.join(cache, "logs/litellm.log"),
      ready: `${url}/health/liveliness`
    })
  let running: Running | undefined = await launch()
  return {
    name: "LiteLLM",
    drivers: ["openai", "responses", "messages"],
    key,
    serving: async (model) => {
      running ??= await launch()
      return { url, model }
    },
    isBusy: behind.isBusy,
    kill: async () => {
      await running?.kill()
      running = undefined
    },
    stop: async () => {
      await running?.kill()
      await behind.stop()
    }
  }
}

/** `transformers serve`, which takes the folder of a model as its name, here below its own. It lists what a hub's cache has, which is empty. */
const transformers = async (): Promise<RealServer> => {
  const folder = await install("transformers")
  const hub = path.join(cache, "hub/hub")
  mkdirSync(hub, { recursive: true })
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const launch = () =>
    start({
      command: path.join(folder, "bin/transformers"),
      args: ["serve", "--host", "127.0.0.1", "--port", String(port), "--device", "cpu"],
      env: { HF_HOME: path.dirname(hub), HF_HUB_OFFLINE: "1", OMP_NUM_THREADS: "1" },
      cwd: modelsFolder,
      log: path.join(cache, "logs/transformers.log"),
      ready: `${url}/health`
    })
  let running: Running | undefined = await launch()
  return {
    name: "transformers",
    drivers: ["openai", "responses"],
    thinking: "template",
    isListed: false,
    serving: async (model) => {
      running ??= await launch()
      return { url, model }
    },
    isBusy: () => running === undefined ? Promise.resolve(false) : isWorking(running.pid),
    kill: async () => {
      await running?.kill()
      running = undefined
    },
    stop: async () => {
      await running?.kill()
    }
  }
}

/** The servers by name, each started on demand. */
export const realServers: Readonly<Record<string, () => Promise<RealServer>>> = {
  "llama.cpp": llamaCpp,
  Ollama: ollama,
  LiteLLM: litellm,
  vLLM: vllm,
  transformers
}

/** Writes the models. */
export const prepareModels = (): void => {
  mkdirSync(modelsFolder, { recursive: true })
  writeModels(modelsFolder)
}
