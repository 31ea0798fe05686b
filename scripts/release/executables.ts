// The single executables: Node with the service inside. Every platform can build the executables of all platforms.
import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { promisify } from "node:util"
import { packAssets } from "../bundle/assets.ts"
import { buildService, bundle, noticesAsset } from "../bundle/service.ts"
import type { Effort } from "../console.ts"
import { nodeFlags } from "../nodeFlags.ts"
import { machineOf } from "./binaries.ts"
import type { Platform } from "./nodes.ts"
import type { Origin } from "./npmPackage.ts"

/** The content of an executable besides Node. */
export interface Inside {
  readonly main: string
  readonly service: string
  /** The assets without the notices, because those also contain Node's license. */
  readonly assets: ReadonlyMap<string, Uint8Array>
}

/** Builds the content that all platforms share. */
export const buildInside = async (origin: Origin, effort: Effort): Promise<Inside> => {
  const info = { form: "executable", ...origin, assets: null } as const
  const [main, { assets, code }] = await Promise.all([
    bundle("executable.ts", info),
    buildService("server/cli/program.ts", info, effort)
  ])
  return { main: main.code, service: code, assets }
}

/** The marker in Node that changes when an application is injected. */
const fuse = "NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2:1"

/** Throws unless an executable is for the platform and has all content inside. */
export const checkExecutable = (bytes: Buffer, { machine, name }: Platform, inside: Inside): void => {
  const found = machineOf(bytes)
  if (found?.format !== machine.format || found.cpu !== machine.cpu) throw new Error(`${name}: not for this machine`)
  for (const [what, part] of [["mark", fuse], ["service", inside.service]] as const) {
    if (!bytes.includes(part)) throw new Error(`${name}: the executable has no ${what} inside`)
  }
}

/** Builds the executable of a platform from its Node. `notices` is the text that `licenses` prints. */
export const makeExecutable = async (
  platform: Platform,
  node: Buffer,
  notices: string,
  inside: Inside
): Promise<Buffer> => {
  const folder = mkdtempSync(path.join(tmpdir(), "executable-"))
  const file = (name: string) => path.join(folder, name)
  try {
    // Names become part of the bytes, so they must not depend on the folder.
    writeFileSync(file("node"), node)
    writeFileSync(file("main.mjs"), inside.main)
    writeFileSync(file("service.js"), inside.service)
    writeFileSync(file("assets"), packAssets(new Map(inside.assets).set(noticesAsset, Buffer.from(notices))))
    writeFileSync(
      file("sea.json"),
      JSON.stringify({
        main: "main.mjs",
        mainFormat: "module",
        executable: "node",
        output: "executable",
        disableExperimentalSEAWarning: true,
        execArgv: nodeFlags,
        useCodeCache: false,
        useSnapshot: false,
        assets: { service: "service.js", assets: "assets" }
      })
    )
    await promisify(execFile)(process.execPath, ["--build-sea", "sea.json"], { cwd: folder })
    const bytes = readFileSync(file("executable"))
    checkExecutable(bytes, platform, inside)
    return bytes
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const longestRun = 30_000

/** Runs an executable in an empty environment. Throws unless it prints its version, serves requests and has its pages. */
export const tryExecutable = async (executable: string, version: string): Promise<void> => {
  const folder = mkdtempSync(path.join(tmpdir(), "alone-"))
  const nothing = path.join(folder, "nothing")
  mkdirSync(nothing)
  const file = path.join(folder, "model-gateway")
  writeFileSync(file, readFileSync(executable))
  chmodSync(file, 0o755)
  try {
    const { stderr, stdout } = await promisify(execFile)(file, ["--version"], { cwd: nothing, env: {} })
    if (!stdout.startsWith(`model-gateway v${version} (`) || stderr !== "") throw new Error(stdout + stderr)
    await tryService(file, nothing)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const tryService = async (file: string, cwd: string): Promise<void> => {
  const child = spawn(file, { cwd, env: { PORT: "0", GATEWAY_CONFIG_JSON: "{\"keys\":[\"key\"]}" } })
  const ended = once(child, "close")
  const timer = setTimeout(() => child.kill("SIGKILL"), longestRun)
  try {
    let said = ""
    const url = await new Promise<string>((resolve, reject) => {
      const look = (text: Buffer) => {
        said += String(text)
        const found = /listens on (http:\/\/\S+)\n/.exec(said)?.[1]
        if (found !== undefined) resolve(found)
      }
      child.stdout.on("data", look)
      child.stderr.on("data", look)
      void ended.then(() => reject(new Error(`the executable ended: ${said}`)))
    })
    const reply = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: "Bearer key" },
      body: JSON.stringify({ model: "upstream-chat", messages: [{ role: "user", content: "from inside" }] })
    })
    const pages = await Promise.all(["/docs", "/console/"].map(async (page) => (await fetch(url + page)).text()))
    const answers = [await reply.text(), ...pages]
    for (const [i, expected] of ["from inside", "SwaggerUIBundle", "<html"].entries()) {
      if (!answers[i]?.includes(expected)) throw new Error(`the executable answers: ${answers[i]?.slice(0, 500)}`)
    }
  } finally {
    child.kill("SIGTERM")
    await ended
    clearTimeout(timer)
  }
  if (child.exitCode !== 0) throw new Error(`the executable ended with exit code ${child.exitCode}`)
}
