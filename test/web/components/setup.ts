/**
 * Finds the Chromium for the tests of components. Without one these tests fail at their start, and the others run.
 */
import { executable } from "../chromium.ts"

export default async (): Promise<void> => {
  try {
    process.env["CHROME_PATH"] = await executable()
  } catch (reason) {
    console.error(reason instanceof Error ? reason.message : reason)
  }
}
