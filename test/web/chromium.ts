/**
 * Finds the Chromium of the tests: an installed one, or one that it downloads. Reports what it downloads, and throws if both
 * fail.
 */
import { execFile, execFileSync } from "node:child_process"
import { accessSync, constants, existsSync, readdirSync } from "node:fs"
import { homedir } from "node:os"
import path from "node:path"
import { pathToFileURL } from "node:url"
import { promisify } from "node:util"
import { type Browser, chromium } from "playwright-core"

const run = promisify(execFile)
const root = path.join(import.meta.dirname, "../..")

/** The package that contains a build of Chromium, and the folder where it is installed if no other is found. */
const brought = {
  name: "@sparticuz/chromium",
  version: "153.0.0",
  folder: path.join(root, "node_modules/.cache/chromium")
}

const names = [
  "chromium",
  "chromium-browser",
  "google-chrome",
  "google-chrome-stable",
  "chrome",
  "microsoft-edge",
  "msedge"
]

const usualPlaces = [
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
  "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
  "C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe",
  "C:\\Program Files (x86)\\Google\\Chrome\\Application\\chrome.exe",
  "C:\\Program Files (x86)\\Microsoft\\Edge\\Application\\msedge.exe"
]

/** Builds that test tools have downloaded. */
const fetched = (): Array<string> => {
  const folder = process.env["PLAYWRIGHT_BROWSERS_PATH"] ?? path.join(homedir(), ".cache/ms-playwright")
  if (!existsSync(folder)) return []
  return readdirSync(folder).filter((name) => name.startsWith("chromium-"))
    .flatMap((name) => ["chrome-linux", "chrome-linux64"].map((part) => path.join(folder, name, part, "chrome")))
}

const runs = (file: string): boolean => {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** An installed Chrome, Chromium or Edge; `CHROME_PATH` names one. */
const installed = (): string | undefined => {
  const named = process.env["CHROME_PATH"]
  if (named !== undefined && named !== "") {
    if (!runs(named)) throw new Error(`CHROME_PATH names ${named}, which cannot be run`)
    return named
  }
  const inPath = (process.env["PATH"] ?? "").split(path.delimiter).filter((folder) => folder !== "")
    .flatMap((folder) => names.map((name) => path.join(folder, name)))
  return [...inPath, ...usualPlaces, ...fetched()].find(runs)
}

const answers = async (file: string): Promise<boolean> => {
  try {
    await run(file, ["--version", "--no-sandbox"])
    return true
  } catch {
    return false
  }
}

/** The build of the registry's package; `undefined` if it does not run on this machine. */
const fromRegistry = async (): Promise<string | undefined> => {
  const { folder, name, version } = brought
  const entry = path.join(folder, "node_modules", name, "build/index.js")
  if (process.platform !== "linux") return undefined
  try {
    if (!existsSync(entry)) {
      console.error(`No Chrome or Chromium is installed: downloading ${name} ${version}…`)
      const npm = ["install", "--prefix", folder, "--no-save", "--no-audit", "--no-fund", `${name}@${version}`]
      await run("npm", npm, { cwd: root })
    }
    const { default: build } = await import(/* @vite-ignore */ pathToFileURL(entry).href) as {
      readonly default: { readonly executablePath: () => Promise<string> }
    }
    const file = await build.executablePath()
    return await answers(file) ? file : undefined
  } catch {
    return undefined
  }
}

/** Debian's package, if this process may install it. */
const fromDebian = (): string | undefined => {
  if (process.getuid?.() !== 0 || !existsSync("/usr/bin/apt-get")) return undefined
  console.error("Installing Debian's chromium…")
  try {
    execFileSync("apt-get", ["update"], { stdio: "ignore" })
    execFileSync("apt-get", ["install", "-y", "--no-install-recommends", "chromium"], {
      stdio: "ignore",
      env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" }
    })
  } catch {
    return undefined
  }
  return installed()
}

let found: Promise<string> | undefined

/** The path of the Chromium. Downloads one if necessary, which two processes must not do concurrently. */
export const executable = (): Promise<string> =>
  found ??= (async () => {
    const file = installed() ?? await fromRegistry() ?? fromDebian()
    if (file !== undefined) return file
    throw new Error(
      "The console's tests need Chrome or Chromium, which could not be found or downloaded: install it, or set CHROME_PATH"
    )
  })()

/** Starts a browser without a window: `pinned` prefers the build of the registry's package, which draws pictures alike everywhere. */
export const launch = async (pinned = false): Promise<Browser> =>
  chromium.launch({
    executablePath: (pinned ? await fromRegistry() : undefined) ?? await executable(),
    // Containers lack a sandbox for it, and have little shared memory. Builds differ in how they hint letters by default.
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--font-render-hinting=slight"]
  })
