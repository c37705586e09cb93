// Package snapshots gives Go what the committed snapshots of the templates say, so that a test can start the worker as
// Container Apps would.
package snapshots

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
)

//go:embed worker.snapshot.json
var workerSnapshot []byte

// ContainerEnvironment returns the variables that worker.bicep gives to the container by default. Names of hosts and ids
// are those of the snapshot's parameters, and are for the caller to replace.
func ContainerEnvironment() (map[string]string, error) {
	var content struct {
		Resources []struct {
			Type       string `json:"type"`
			Properties struct {
				Template struct {
					Containers []struct {
						Env []struct{ Name, Value string } `json:"env"`
					} `json:"containers"`
				} `json:"template"`
			} `json:"properties"`
		} `json:"predictedResources"`
	}
	if err := json.Unmarshal(workerSnapshot, &content); err != nil {
		return nil, fmt.Errorf("snapshots: worker.snapshot.json: %w", err)
	}
	for _, r := range content.Resources {
		if r.Type != "Microsoft.App/containerApps" || len(r.Properties.Template.Containers) != 1 {
			continue
		}
		variables := map[string]string{}
		for _, v := range r.Properties.Template.Containers[0].Env {
			variables[v.Name] = v.Value
		}
		return variables, nil
	}
	return nil, errors.New("snapshots: worker.snapshot.json has no container app with one container; run scripts/infra-check.sh update")
}
