import { render } from "solid-js/web";
import { App } from "./app";
import { listenForKeys } from "./keys";
import { followLinks } from "./router";
import "./style.css";
import { startTheme } from "./theme";

startTheme();
followLinks();
listenForKeys();
render(() => <App />, document.getElementById("app") as HTMLElement);
