/**
 * Finds the Chromium of the tests: an installed one, or one that it downloads. Reports what it downloads, and throws if both
 * fail.
 */
import { execFile, execFileSync } from "node:child_process"
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync
} from "node:fs"
import { homedir } from "node:os"
import path from "node:path"
import { promisify } from "node:util"
import { type Browser, chromium, type LaunchOptions } from "playwright-core"

const run = promisify(execFile)
const root = path.join(import.meta.dirname, "../..")

/** The package that contains a build of Chromium, and the folder where it is installed if no other is found. */
const brought = { name: "@sparticuz/chromium", version: "153.0.0" }

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

/** The browser that `CHROME_PATH` names. */
const named = (): string | undefined => {
  const file = process.env["CHROME_PATH"]
  if (file === undefined || file === "") return undefined
  if (!runs(file)) throw new Error(`CHROME_PATH names ${file}, which cannot be run`)
  return file
}

/** An installed Chrome, Chromium or Edge. */
const installed = (): string | undefined => {
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

/** Where the package's build is unpacked: the package itself would share one file in the system's temporary folder. */
const unpacked = path.join(root, `node_modules/.cache/chromium-${brought.version}`)

/** The fonts that the package contains, so that no page depends on the fonts of the machine. */
const fontConfiguration = path.join(unpacked, "fonts.conf")

/** Downloads and unpacks the package in a folder of its own, which becomes visible as a whole. */
const download = async (): Promise<void> => {
  const { name, version } = brought
  console.error(`Downloading the browser of the tests, ${name} ${version}…`)
  mkdirSync(path.dirname(unpacked), { recursive: true })
  const folder = mkdtempSync(`${unpacked}-`)
  try {
    const npm = ["install", "--prefix", folder, "--no-save", "--no-audit", "--no-fund", `${name}@${version}`]
    await run("npm", npm, { cwd: root })
    const unpack = `await (await import("${name}")).default.executablePath()`
    await run(process.execPath, ["--input-type=module", "--eval", unpack], {
      cwd: folder,
      env: { ...process.env, TMPDIR: folder }
    })
    rmSync(path.join(folder, "node_modules"), { recursive: true })
    writeFileSync(
      path.join(folder, "fonts.conf"),
      `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig><dir>${unpacked}/fonts</dir><cachedir>${unpacked}/cache</cachedir></fontconfig>\n`
    )
    renameSync(folder, unpacked)
  } catch (reason) {
    rmSync(folder, { recursive: true, force: true })
    // Another process may have been faster.
    if (!existsSync(unpacked)) throw reason
  }
}

const bring = async (): Promise<string | undefined> => {
  if (process.platform !== "linux") return undefined
  try {
    if (!existsSync(unpacked)) await download()
    const file = path.join(unpacked, "chromium")
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

let registered: Promise<string | undefined> | undefined

/**
 * The build of the registry's package, which draws pictures alike on every machine; `undefined` if it does not run on this one.
 * Downloads it if necessary.
 */
export const fromRegistry = (): Promise<string | undefined> => registered ??= bring()

/** The environment of a browser: with the fonts of the registry's package, where that is available. */
export const fixedFonts = async (): Promise<Readonly<Record<string, string>>> => {
  await fromRegistry()
  return existsSync(fontConfiguration) ? { FONTCONFIG_FILE: fontConfiguration } : {}
}

/** Where the committed pictures of the console were taken. */
const picturePlatform = "linux-x64"

const platform = `${process.platform}-${process.arch}`

/** Whether this machine can run the browser that took them. The other tests use it too, so that one browser serves a run. */
const takesPictures = platform === picturePlatform

let found: Promise<string> | undefined

/** The path of the Chromium. Downloads one if necessary, which two processes must not do concurrently. */
export const executable = (): Promise<string> =>
  found ??= (async () => {
    const file = named() ?? (takesPictures ? await fromRegistry() : undefined) ?? installed() ?? await fromRegistry() ??
      fromDebian()
    if (file !== undefined) return file
    throw new Error(
      "The console's tests need Chrome or Chromium, which could not be found or downloaded: install it, or set CHROME_PATH"
    )
  })()

/** The browser that took the committed pictures; elsewhere `undefined`, and the run says that they are not compared. */
export const pictureBrowser = async (): Promise<string | undefined> => {
  const file = takesPictures ? await fromRegistry() : undefined
  if (file === undefined) {
    const { name, version } = brought
    const reason = takesPictures ? "it does not run here" : `this is ${platform}`
    console.error(`Skipped: the pictures of the console are of ${name} ${version} on ${picturePlatform}; ${reason}`)
  }
  return file
}

const launchOptions = async (file: string): Promise<LaunchOptions> => ({
  executablePath: file,
  env: { ...process.env, ...await fixedFonts() },
  // Containers lack a sandbox for it, and have little shared memory. Builds differ in how they hint letters by default.
  args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--font-render-hinting=slight"]
})

/** The variable with the address of the browser of the run, which the workers inherit. */
const shared = "TEST_BROWSER"

/** Starts one browser for all workers of a run. Resolves to what ends it. */
export const share = async (): Promise<() => Promise<void>> => {
  const server = await chromium.launchServer({ ...await launchOptions(await executable()), host: "127.0.0.1" })
  process.env[shared] = server.wsEndpoint()
  return async () => {
    delete process.env[shared]
    await server.close()
  }
}

/**
 * A browser without a window: the one of the run if there is one and it is of that file, else a new one. Closing the browser of the run
 * closes what was opened here, and leaves the browser to others.
 */
export const launch = async (file?: string): Promise<Browser> => {
  const wanted = file ?? await executable()
  const endpoint = process.env[shared]
  return endpoint !== undefined && wanted === await executable()
    ? chromium.connect(endpoint)
    : chromium.launch(await launchOptions(wanted))
}
