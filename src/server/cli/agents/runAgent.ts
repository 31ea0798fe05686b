/**
 * Starts an agent that is connected to a gateway, and ends with it.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type ChildProcess, execFile, spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { accessSync, constants, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs"
import { constants as system, homedir, tmpdir } from "node:os"
import { delimiter, join } from "node:path"
import { isRecord, type JsonRecord } from "../../../domain/json.ts"
import { type AgentModel, type AgentName, agents, type Connection } from "./clients.ts"

/** What a user can mend, in one line. */
export class AgentFailed extends Schema.TaggedError<AgentFailed>()("AgentFailed", { message: Schema.String }) {}

const failed = (message: string) => new AgentFailed({ message })

/** Milliseconds that the gateway has for its list, and a program for what it is asked. */
const patience = 10_000

/** Bytes that a program may print at most. */
const mostPrinted = 16 * 1024 * 1024

const numberIn = (value: unknown): number | undefined => typeof value === "number" && value > 0 ? value : undefined

const textIn = (value: unknown): string | undefined => typeof value === "string" && value !== "" ? value : undefined

const textsIn = (value: unknown): ReadonlyArray<string> | undefined =>
  Array.isArray(value) ? value.filter((each) => typeof each === "string") : undefined

/** A model of the gateway's list. */
const modelOf = (entry: JsonRecord): AgentModel => {
  const { architecture, top_provider: provider } = entry
  return {
    id: String(entry["id"]),
    name: textIn(entry["name"]),
    description: textIn(entry["description"]),
    window: numberIn(entry["context_length"]),
    maxOutput: numberIn(isRecord(provider) ? provider["max_completion_tokens"] : undefined),
    efforts: textsIn(entry["efforts"]),
    input: textsIn(isRecord(architecture) ? architecture["input_modalities"] : undefined)
  }
}

/** The models that a key may use. Fails for a gateway that is not there, and for a key that it refuses. */
export const readGateway = (url: string, key: string): Effect.Effect<ReadonlyArray<AgentModel>, AgentFailed> =>
  Effect.tryPromise({
    try: async () => {
      const response = await fetch(`${url}/v1/models`, {
        headers: { authorization: `Bearer ${key}` },
        signal: AbortSignal.timeout(patience)
      }).catch((error: unknown) => {
        const { cause } = error as { readonly cause?: { readonly code?: string; readonly message?: string } }
        throw failed(`The gateway ${url} cannot be reached (${cause?.code ?? cause?.message ?? String(error)})`)
      })
      if (response.status === 401) throw failed(`The gateway ${url} refuses the key`)
      const body: unknown = await response.json().catch(() => undefined)
      const list = isRecord(body) ? body["data"] : undefined
      if (!response.ok || !Array.isArray(list)) {
        throw failed(`${url} is no gateway: ${url}/v1/models answers with status ${response.status}`)
      }
      return list.filter((entry: unknown): entry is JsonRecord => isRecord(entry) && typeof entry["id"] === "string")
        .map(modelOf)
    },
    catch: (error) => error instanceof AgentFailed ? error : failed(String(error))
  })

/** The model of a name; `undefined` without a name. */
export const modelNamed = (
  models: ReadonlyArray<AgentModel>,
  name: string | undefined
): Effect.Effect<AgentModel | undefined, AgentFailed> => {
  if (name === undefined) return Effect.succeed(undefined)
  const found = models.find(({ id }) => id === name)
  return found === undefined
    ? Effect.fail(failed(`The gateway has no model ${JSON.stringify(name)} for this key`))
    : Effect.succeed(found)
}

const isProgram = (path: string): boolean => {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

/** The path of a program in the folders of `PATH`. */
const findProgram = (name: string): Effect.Effect<string, AgentFailed> =>
  Effect.suspend(() => {
    const paths = (process.env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "")
      .map((folder) => join(folder, name))
    const found = paths.find(isProgram)
    return found === undefined
      ? Effect.fail(failed(`${name} is not installed: PATH has no such program`))
      : Effect.succeed(found)
  })

/** What a program prints as JSON; `undefined` if it prints none. */
const ask = (program: string, args: ReadonlyArray<string>): Effect.Effect<unknown> =>
  Effect.callback<unknown>((resume) => {
    const child = execFile(program, [...args], { maxBuffer: mostPrinted, timeout: patience }, (error, stdout) => {
      try {
        resume(Effect.succeed(error === null ? JSON.parse(stdout) : undefined))
      } catch {
        resume(Effect.undefined)
      }
    })
    return Effect.sync(() => child.kill())
  })

/**
 * Makes a folder that only the user may read. gemini-cli reads settings from no folder within one that others may write to, such as `/tmp`, so
 * the user's own folders come first.
 */
const makeFolder = (): string => {
  const runtime = process.env["XDG_RUNTIME_DIR"]
  for (const parent of [...runtime === undefined || runtime === "" ? [] : [runtime], homedir()]) {
    try {
      return mkdtempSync(join(parent, ".model-gateway-"))
    } catch {
      // A folder that cannot be written to is passed over.
    }
  }
  return mkdtempSync(join(tmpdir(), "model-gateway-"))
}

/** Such a folder for as long as the scope is open. */
const temporaryFolder = Effect.acquireRelease(
  Effect.sync(makeFolder),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

const forwarded = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const

/** Waits for the end of a program, to which the signals of this process go. Returns its exit code. */
const untilEnd = (child: ChildProcess, program: string): Effect.Effect<number, AgentFailed> =>
  Effect.callback<number, AgentFailed>((resume) => {
    // A terminal sends its interrupt to the program too, so it is not sent twice.
    const pass = (signal: NodeJS.Signals) => {
      if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal)
    }
    const forget = () => {
      for (const signal of forwarded) process.off(signal, pass)
    }
    for (const signal of forwarded) process.on(signal, pass)
    child.once("error", (error) => {
      forget()
      resume(Effect.fail(failed(`${program} cannot be started: ${error.message}`)))
    })
    child.once("close", (code, signal) => {
      forget()
      resume(Effect.succeed(code ?? 128 + (signal === null ? 0 : system.signals[signal])))
    })
  })

/** What `run` is asked for. */
export interface AgentOptions {
  readonly url: string
  readonly key: string
  readonly model: string | undefined
  readonly ownLogin: boolean
  /** The user's own arguments, which come last. */
  readonly args: ReadonlyArray<string>
}

/** Starts an agent and returns its exit code. Fails before anything is started. */
export const runAgent = (
  name: AgentName,
  { args, key, model, ownLogin, url }: AgentOptions
): Effect.Effect<number, AgentFailed> =>
  Effect.scoped(Effect.gen(function*() {
    const agent = agents[name]
    const program = yield* findProgram(agent.program)
    const models = yield* readGateway(url, key)
    const named = yield* modelNamed(models, model)
    const folder = yield* temporaryFolder
    const connection: Connection = {
      url,
      key,
      models,
      model: named,
      ownLogin,
      session: randomUUID(),
      fileAt: (file) => join(folder, file)
    }
    const start = "startWith" in agent
      ? agent.startWith(connection, yield* ask(program, agent.asks))
      : agent.start(connection)
    for (const [file, content] of Object.entries(start.files)) {
      writeFileSync(join(folder, file), content, { mode: 0o600 })
    }
    // The signals of this process go to the agent, which ends when it wants to.
    return yield* Effect.uninterruptible(Effect.suspend(() =>
      untilEnd(
        spawn(program, [...start.args, ...args], { stdio: "inherit", env: { ...process.env, ...start.env } }),
        agent.program
      )
    ))
  }))
