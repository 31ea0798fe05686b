// `npm run test:clients [-- NAME …]`: starts each agent command line of docs/clients with the lines of its page, and again with those
// of the console, against the gateway with its built-in upstream. Each must print the gateway's answer.
//
// The versions are pinned here, and the table of the page is made from this list. The packages are large, so that `./scripts/test` does not
// install them; they stay in node_modules/.cache/clients.
import { execFile, execFileSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { promisify } from "node:util"
import { type SnippetName, snippetOf } from "../src/web/pages/keys/snippets.ts"

const root = path.join(import.meta.dirname, "..")

/** An agent command line. */
interface Client {
  readonly name: SnippetName
  readonly api: string
  readonly package: string
  readonly version: string
  /** The program and its arguments up to the question. */
  readonly command: ReadonlyArray<string>
  /** Blocks of the pages in docs/clients that are files, by their places; `~` is the user's folder. */
  readonly files: Readonly<Record<string, string>>
  /** The block that sets variables. */
  readonly shell?: string
  /** What a run without a terminal needs besides. */
  readonly environment?: Readonly<Record<string, string>>
}

/** The clients with the versions that were tried last. */
export const clients: ReadonlyArray<Client> = [
  {
    name: "codex",
    api: "Responses",
    package: "@openai/codex",
    version: "0.171.0",
    command: ["codex", "exec", "--skip-git-repo-check"],
    files: { "~/.codex/config.toml": "toml" },
    environment: { GATEWAY_KEY: "my-key" }
  },
  {
    name: "Claude Code",
    api: "Messages",
    package: "@anthropic-ai/claude-code",
    version: "2.1.332",
    command: ["claude", "-p"],
    files: {},
    shell: "sh messages"
  },
  {
    name: "gemini-cli",
    api: "Gemini",
    package: "@google/gemini-cli",
    version: "0.61.0",
    command: ["gemini", "-p"],
    files: { "~/.gemini/settings.json": "json gemini-cli" },
    shell: "sh gemini-cli",
    environment: { GEMINI_CLI_TRUST_WORKSPACE: "true" }
  },
  {
    name: "qwen-code",
    api: "Chat Completions",
    package: "@qwen-code/qwen-code",
    version: "0.24.4",
    command: ["qwen", "-p"],
    files: {},
    shell: "sh qwen-code"
  },
  {
    name: "opencode",
    api: "Chat Completions",
    package: "opencode-ai",
    version: "1.18.33",
    command: ["opencode", "run"],
    files: { "opencode.json": "json opencode" }
  },
  {
    name: "pi",
    api: "Chat Completions",
    package: "@mariozechner/pi-coding-agent",
    version: "0.73.1",
    command: ["pi", "-p"],
    files: { "~/.pi/agent/models.json": "json pi" }
  }
]

const folder = path.join(root, "docs/clients")
const pages = readdirSync(folder).map((file) => readFileSync(path.join(folder, file), "utf8")).join("\n")

/** A block of the pages in docs/clients by its info string. */
export const blockOf = (info: string): string => {
  const found = new RegExp(`^\`\`\`${info}\\n([^]*?)^\`\`\`$`, "m").exec(pages)?.[1]
  if (found === undefined) throw new Error(`docs/clients has no block ${info}`)
  return found
}

/** The variables that shell lines export. */
export const exportedBy = (lines: string): Record<string, string> =>
  Object.fromEntries(
    [...lines.matchAll(/^export (\w+)=(?:'(.*)'|(.*))$/gm)].map((
      [, name = "", quoted, plain]
    ) => [name, quoted ?? plain!])
  )

/** The files and variables of a client, as docs/clients and as the console has them. */
export const linesOf = ({ files, name, shell }: Client) => {
  const texts = Object.fromEntries(Object.entries(files).map(([place, info]) => [place, blockOf(info)]))
  const docs = { files: texts, variables: shell === undefined ? {} : exportedBy(blockOf(shell)) }
  const shown = snippetOf(name, { base: "http://127.0.0.1:5001", key: "my-key", model: "upstream-chat" })
  const [place] = Object.keys(files)
  // Lines for a shell write their file themselves.
  const written = /^cat > (\S+) <<'END'\n([^]*?)^END$/m.exec(shown)
  const console = shell === undefined
    ? { files: { [place!]: shown }, variables: {} }
    : { files: written === null ? {} : { [written[1]!]: written[2]! }, variables: exportedBy(shown) }
  return { docs, console }
}

const run = promisify(execFile)
const longest = 120_000

/** Installs a client where it is not installed. Returns its program. */
export const install = (client: Client): string => {
  const folder = path.join(root, "node_modules/.cache/clients", `${client.command[0]}-${client.version}`)
  const bin = path.join(folder, "node_modules/.bin", client.command[0]!)
  if (existsSync(bin)) return bin
  mkdirSync(folder, { recursive: true })
  execFileSync(
    "npm",
    [
      "install",
      "--no-audit",
      "--no-fund",
      "--ignore-scripts=false",
      "--prefix",
      folder,
      `${client.package}@${client.version}`
    ],
    {
      stdio: ["ignore", "ignore", "inherit"]
    }
  )
  return bin
}

/** Runs a client in a folder and with a home of its own. Returns what it prints. */
const answerOf = async (
  client: Client,
  bin: string,
  { files, variables }: ReturnType<typeof linesOf>["docs"],
  url: string
): Promise<string> => {
  const home = mkdtempSync(path.join(tmpdir(), "gateway-client-"))
  const project = path.join(home, "project")
  mkdirSync(project)
  const here = (text: string) => text.replaceAll("http://127.0.0.1:5001", url)
  try {
    for (const [place, text] of Object.entries(files)) {
      const file = place.startsWith("~/") ? path.join(home, place.slice(2)) : path.join(project, place)
      mkdirSync(path.dirname(file), { recursive: true })
      writeFileSync(file, here(text))
    }
    const environment = {
      PATH: process.env["PATH"] ?? "",
      HOME: home,
      ...client.environment,
      ...Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, here(value)]))
    }
    const running = run(bin, [...client.command.slice(1), "Hello"], {
      cwd: project,
      env: environment,
      timeout: longest
    })
    running.child.stdin?.end()
    const { stderr, stdout } = await running
    return `${stdout}\n${stderr}`
  } catch (error) {
    return String(error)
  } finally {
    rmSync(home, { recursive: true, force: true, maxRetries: 5 })
  }
}

const main = async (names: ReadonlyArray<string>): Promise<void> => {
  const { startGateway } = await import("../test/support/gateway.ts")
  const gateway = await startGateway({ keys: ["my-key"] })
  let failed = 0
  let passed = 0
  try {
    for (const client of clients) {
      if (names.length > 0 && !names.includes(client.name)) continue
      const bin = install(client)
      for (const [source, lines] of Object.entries(linesOf(client))) {
        const output = await answerOf(client, bin, lines, gateway.url)
        const isAnswered = output.includes("I am the built-in upstream")
        if (isAnswered) passed++
        else failed++
        console.log(`${isAnswered ? "ok    " : "FAILED"} ${client.name} ${client.version}, lines of the ${source}`)
        if (!isAnswered) console.log(output.trim().split("\n").slice(-15).map((line) => `       ${line}`).join("\n"))
      }
    }
  } finally {
    await gateway.stop()
  }
  console.log(`${passed} passed, ${failed} failed`)
  process.exitCode = failed === 0 ? 0 : 1
}

if (import.meta.main) await main(process.argv.slice(2))
