/** A device for the tests: Dawn's, on the software driver where Linux shows no GPU. */

import { offerWebGPU } from "../dawn.mjs";

await offerWebGPU();
