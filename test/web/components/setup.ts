/**
 * Finds the Chromium for the tests of components. Without one these tests fail at their start, and the others run.
 */
import { executable, fixedFonts } from "../chromium.ts"

export default async (): Promise<void> => {
  try {
    process.env["CHROME_PATH"] = await executable()
    Object.assign(process.env, await fixedFonts())
  } catch (reason) {
    console.error(reason instanceof Error ? reason.message : reason)
  }
}
