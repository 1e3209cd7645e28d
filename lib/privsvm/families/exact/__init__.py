"""Support vector machines without privacy, solved exactly."""
